package remote

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/test/recipes/kube"
)

const (
	repository = "../../.."
	login      = "CANARY-login"
	chapKey    = "CANARY-chap"
	mebi       = 1 << 20
)

// world is a run's surroundings: the files of its image and of its pod, the API server, and the
// storage.
type world struct {
	t      *testing.T
	dir    string
	recipe recipe
	api    *kube.Server
	// properties of the config.
	properties map[string]string
	appliance  *appliance
	canaries   []string // secrets that the world has beside those of all worlds
	leaky      bool     // and said so by the test itself

	mu   sync.Mutex
	said bytes.Buffer // everything that all runs have printed
	runs int
}

// end is how a run ended.
type end struct {
	code         int
	out, message string
}

// edition changes a script, so that a test can show that it would find a fault.
type edition struct{ from, to string }

func newWorld(t *testing.T, r recipe, editions ...edition) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), recipe: r, properties: map[string]string{"box": "root@box"}}
	for _, dir := range []string{"etc/secret", "account", "bin", "programs", "box/conf.d", "box/volumes", "box/lio/iscsi", "box/rtslib", "tmp"} {
		must(t, os.MkdirAll(filepath.Join(w.dir, dir), 0o755))
	}
	self, err := os.Executable()
	must(t, err)
	names := append(slices.Clone(watched), "ssh")
	for name := range played {
		if name != "ssh" && !r.onBox {
			names = append(names, name)
		}
	}
	for _, name := range names {
		must(t, os.Symlink(self, filepath.Join(w.dir, "bin", name)))
	}
	must(t, os.Symlink(flex(), filepath.Join(w.dir, "programs", "flex")))
	w.install(editions)
	w.api = kube.New(t, filepath.Join(w.dir, "account"))
	for name, content := range map[string]string{
		"header": "Authorization: Bearer " + login + "\n", "chap": chapKey, "key": "CANARY-key", "known_hosts": "box ssh-ed25519 AAAA\n",
	} {
		w.write("etc/secret/"+name, content)
	}
	r.setUp(w)
	t.Cleanup(w.mustKeepSecrets)
	return w
}

// install writes the script of the recipe's ConfigMap, with the paths of this world. Those of a real
// box are as they are.
func (w *world) install(editions []edition) {
	w.t.Helper()
	text := scriptOf(w.t, w.recipe.name)
	for _, e := range editions {
		if !strings.Contains(text, e.from) {
			w.t.Fatalf("the script has no %q", e.from)
		}
		text = strings.ReplaceAll(text, e.from, e.to)
	}
	paths := []string{"/etc/flex", filepath.Join(w.dir, "etc")}
	if !w.recipe.onBox {
		paths = append(paths,
			"/etc/tgt/conf.d", filepath.Join(w.dir, "box/conf.d"),
			"/sys/kernel/config/target", filepath.Join(w.dir, "box/lio"),
			"/run/flex-", filepath.Join(w.dir, "box/flex-"),
			"/etc/rtslib-fb-target", filepath.Join(w.dir, "box/rtslib"))
	}
	w.write("script", strings.NewReplacer(paths...).Replace(text))
	must(w.t, os.Chmod(filepath.Join(w.dir, "script"), 0o755))
}

// scriptOf returns the script of a recipe, as its file has it.
func scriptOf(t *testing.T, recipe string) string {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(repository, "configmaps", recipe+".yaml"))
	must(t, err)
	objects := strings.Split(string(file), "\n---\n")
	var config corev1.ConfigMap
	must(t, yaml.UnmarshalStrict([]byte(objects[len(objects)-1]), &config))
	return config.Data["script"]
}

func (w *world) write(name, content string) {
	w.t.Helper()
	must(w.t, os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600))
}

// flexDir is where the program flex is, once a test has needed it.
var flexDir string

// flex returns the program of this repository, built so that it looks for its files in the world.
var flex = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "flex-")
	flexDir = dir
	if err == nil {
		err = buildFlex(dir)
	}
	if err != nil {
		panic(err)
	}
	return dir + "/flex"
})

func buildFlex(dir string) error {
	source, err := filepath.Abs(repository + "/shell/container.go")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	in := "os.Getenv(\"" + worldVariable + "\") + "
	changed := strings.NewReplacer("requests: contract.RequestFile", "requests: "+in+`"/etc/request.json"`, "pv: contract.PVFile", "pv: "+in+`"/etc/pv.json"`,
		`"/var/run/secrets/kubernetes.io/serviceaccount"`, in+`"/account"`).Replace(string(text))
	if strings.Count(changed, in) != 3 {
		return fmt.Errorf("%s has other paths than this test knows", source)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {source: dir + "/container.go"}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(dir+"/container.go", []byte(changed), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(dir+"/overlay.json", overlay, 0o600); err != nil {
		return err
	}
	build := exec.Command("go", "build", "-trimpath", "-overlay", dir+"/overlay.json", "-o", dir+"/flex", repository+"/cmd/flex")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// claim returns a request for a claim with this number.
func claim(n int, change ...func(*contract.Request)) contract.Request {
	uid := fmt.Sprintf("6f0c3b1e-2d4a-4c8e-9a57-%012d", n)
	r := contract.Request{
		UID: uid, PVName: contract.PVName(uid), Namespace: "app", Name: fmt.Sprintf("data-%d", n), Class: "gold", ClusterUID: "0f6b2f6e",
		Size: mebi, AccessModes: []string{"ReadWriteOnce"}, VolumeMode: "Filesystem", ReclaimPolicy: "Delete",
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

// run runs a verb to its end.
func (w *world) run(verb contract.Verb, requests ...contract.Request) end {
	w.t.Helper()
	return w.killed(0, verb, requests...)
}

// killed runs a verb, and kills it after a call, which is counted from 1 for all runs of the world.
func (w *world) killed(call int, verb contract.Verb, requests ...contract.Request) end {
	w.t.Helper()
	return w.start(call, verb, requests...)()
}

// start starts a verb, and returns what waits for its end. Runs at the same time have the same
// requests.
func (w *world) start(call int, verb contract.Verb, requests ...contract.Request) func() end {
	w.t.Helper()
	w.input(verb, requests)
	w.runs++
	message := filepath.Join(w.dir, fmt.Sprintf("message-%d", w.runs))
	must(w.t, os.WriteFile(message, nil, 0o600))
	cmd := exec.CommandContext(w.t.Context(), flex(), "each", "8", filepath.Join(w.dir, "script"), string(verb)) // as the container
	cmd.Env = append(w.environment(verb, requests), fmt.Sprintf("%s=%d", killVariable, call), "FLEX_TERMINATION_LOG="+message)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must(w.t, cmd.Start())
	return func() end {
		code := exitOf(cmd.Wait())
		said, err := os.ReadFile(message)
		must(w.t, err)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.said.WriteString(out.String() + string(said))
		return end{code, out.String(), string(said)}
	}
}

// input writes the files of the contract.
func (w *world) input(verb contract.Verb, requests []contract.Request) {
	w.t.Helper()
	text, err := contract.Requests{Version: contract.Version, Verb: verb, Items: requests}.Encode()
	must(w.t, err)
	w.write("etc/request.json", text)
	w.write("etc/pv.json", kube.PVs(w.t, requests...))
}

func (w *world) environment(verb contract.Verb, requests []contract.Request) []string {
	env := []string{
		"PATH=" + filepath.Join(w.dir, "bin") + ":/usr/bin:/bin:/usr/sbin", "HOME=/tmp", "TMPDIR=" + filepath.Join(w.dir, "tmp"), worldVariable + "=" + w.dir,
		"FLEX_VERB=" + string(verb), fmt.Sprintf("FLEX_UNDO=%t", requests[0].Undo), "FLEX_STORAGE_CLASS=gold", "FLEX_KUBE_API=" + w.api.URL,
	}
	for name, value := range w.properties {
		env = append(env, contract.EnvName(name)+"="+value)
	}
	if len(requests) == 1 {
		for _, v := range requests[0].OwnVariables() {
			env = append(env, contract.EnvName(v.Property)+"="+v.Value)
		}
	}
	return env
}

// calls returns the calls of programs so far.
func (w *world) calls() []call {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "calls"))
	if !os.IsNotExist(err) {
		must(w.t, err)
	}
	var all []call
	for line := range bytes.Lines(text) {
		var c call
		must(w.t, json.Unmarshal(line, &c))
		all = append(all, c)
	}
	return all
}

// leaks returns what has been shown of a secret. The arguments of a program can be seen by every
// process of its machine, and a log by whoever reads logs.
func (w *world) leaks() []string {
	w.t.Helper()
	token, err := os.ReadFile(filepath.Join(w.dir, "account", "token"))
	must(w.t, err)
	secrets := append([]string{"CANARY", string(token)}, w.canaries...)
	for _, secret := range w.api.All("secrets") {
		secrets = append(secrets, kube.Password(w.t, secret))
	}
	var found []string
	for _, secret := range secrets {
		if strings.Contains(w.said.String(), secret) {
			found = append(found, "the output has "+secret)
		}
		for _, c := range w.calls() {
			if strings.Contains(c.shown(), secret) {
				found = append(found, fmt.Sprintf("the arguments of %s have %s", c.Name, secret))
			}
		}
	}
	return found
}

// encoded finds the program that ssh carries to a box in its arguments.
var encoded = regexp.MustCompile(`[A-Za-z0-9+/]{64,}=*`)

// shown returns the arguments of a call as every process of its machine can read them: as they are,
// and decoded.
func (c call) shown() string {
	text := strings.Join(c.Arguments, " ")
	for _, word := range encoded.FindAllString(text, -1) {
		if decoded, err := base64.StdEncoding.DecodeString(word); err == nil {
			text += " " + string(decoded)
		}
	}
	return text
}

func (w *world) mustKeepSecrets() {
	w.t.Helper()
	for _, leak := range w.leaks() {
		if !w.leaky {
			w.t.Error(leak)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustEnd fails the test if a run has not ended so.
func (w *world) mustEnd(e end, code int, says string) {
	w.t.Helper()
	if e.code != code || !strings.Contains(e.out+e.message, says) {
		w.t.Fatalf("exit %d, want %d and %q:\n%s%s", e.code, code, says, e.out, e.message)
	}
}
