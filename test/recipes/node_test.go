//go:build recipes || kernels

package recipes

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/test/recipes/kube"
)

// inNamespace names the directory of the process that has a mount namespace of its own. A file system in memory is mounted there, and in it
// everything else: all of it ends with the process, so no test deletes a tree in which something of the machine could be mounted.
const inNamespace = "RECIPES_IN"

// builtFlex names the program flex where there is no compiler: in a guest of test/vm.
const builtFlex = "RECIPES_FLEX"

func TestMain(m *testing.M) {
	if os.Getuid() != 0 {
		os.Exit(m.Run())
	}
	if dir := os.Getenv(inNamespace); dir != "" {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "recipes")
	if err != nil {
		panic(err)
	}
	again := exec.Command("unshare", append([]string{"--mount", "--propagation", "private", os.Args[0]}, os.Args[1:]...)...)
	again.Env = append(os.Environ(), inNamespace+"="+dir)
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	err = again.Run()
	if left := os.Remove(dir); left != nil && err == nil {
		err = left
	}
	exit, is := errors.AsType[*exec.ExitError](err)
	switch {
	case is:
		os.Exit(exit.ExitCode())
	case err != nil:
		panic(err)
	}
}

// node is what a provisioning container has of a node: the files of its image, and a directory of
// the node.
type node struct {
	t    *testing.T
	root string // of the container
	caps string // that its pod-template adds, as setpriv writes them
	base string // the directory, on the machine that runs the test
	api  *kube.Server
}

const (
	class   = "local"
	volumes = "/var/lib/flex-volumes"
	mib     = 1 << 20
)

// newNode makes a container of a script, with a directory on a file system of its own.
func newNode(t *testing.T, script string, mkfs ...string) *node {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("this test mounts file systems: run it as root")
	}
	root, err := os.MkdirTemp(os.Getenv(inNamespace), "node") //nolint:usetesting // what is mounted in it must not be deleted
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, root: root}
	n.base = n.root + volumes
	n.runs("testdata/container.sh", n.root, script, flexProgram(t))
	n.api = kube.New(t, n.root+"/var/run/secrets/kubernetes.io/serviceaccount")
	disk := n.root + ".disk"
	n.runs("truncate", "-s", "1G", disk)
	n.runs(mkfs[0], append(mkfs[1:], disk)...)
	n.runs("mount", "-o", "loop", disk, n.base)
	t.Cleanup(func() { // a guest's memory has room for few disks
		n.runs("umount", n.base)
		n.runs("rm", disk)
	})
	return n
}

// flexProgram returns the path of flex, which is built once.
func flexProgram(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(builtFlex); path != "" {
		return path
	}
	path := os.Getenv(inNamespace) + "/flex"
	if _, err := os.Stat(path); err == nil {
		return path
	}
	command := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../cmd/flex")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build flex: %v: %s", err, out)
	}
	return path
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// runs executes a command of the machine, and returns what it prints. Paths of the command are those of
// the test's directory, and those of a shell's script are below the container's root.
func (n *node) runs(name string, arguments ...string) string {
	n.t.Helper()
	out, err := n.tries(name, arguments...)
	if err != nil {
		n.t.Fatalf("%s %q: %v: %s", name, arguments, err, out)
	}
	return out
}

func (n *node) tries(name string, arguments ...string) (string, error) {
	command := exec.Command(name, arguments...)
	if name == "sh" {
		command.Dir = n.root
	}
	out, err := command.CombinedOutput()
	return string(out), err
}

// claim is what a run is asked for.
type claim struct {
	uid    string
	size   int64
	source *contract.Source
	more   map[string]string // variables
}

func number(i int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i) }

func (c claim) pv() string { return contract.PVName(c.uid) }

// with returns the claim with another variable.
func (c claim) with(name, value string) claim {
	more := map[string]string{name: value}
	maps.Copy(more, c.more)
	c.more = more
	return c
}

func (c claim) request() contract.Request {
	return contract.Request{
		UID: c.uid, PVName: c.pv(), Namespace: "a", Name: "b.c", Class: class, ClusterUID: "0f6b2f6e", Size: c.size,
		AccessModes: []string{"ReadWriteOnce"}, VolumeMode: "Filesystem", ReclaimPolicy: "Delete", Source: c.source,
		SelectedNode: "node1", SelectedTopology: map[string]string{contract.TopologyHostname: "node1"},
	}
}

func (n *node) environment(verb string, c claim) []string {
	all := map[string]string{
		"PATH": "/faults:/bin", "FLEX_VERB": verb, "FLEX_BASE_DIR": volumes, "FLEX_KUBE_API": n.api.URL, "FLEX_STORAGE_CLASS": class,
	}
	for _, v := range c.request().OwnVariables() {
		all[contract.EnvName(v.Property)] = v.Value
	}
	maps.Copy(all, c.more)
	var out []string
	for name, value := range all {
		out = append(out, name+"="+value)
	}
	return out
}

// ending is how a run has ended. A killed one has the code -1.
type ending struct {
	code int
	says string // what it prints, with the message at the end
}

// try runs a verb to its end.
func (n *node) try(verb string, c claim) (code int, says string) {
	n.t.Helper()
	end := <-n.start(verb, c)
	if verb == "delete" {
		n.api.Forget()
	}
	return end.code, end.says
}

// start starts a verb. Runs at the same time have the files of the one that was started last.
func (n *node) start(verb string, c claim) <-chan ending {
	n.t.Helper()
	request, err := contract.Requests{Version: contract.Version, Verb: contract.Verb(verb), Items: []contract.Request{c.request()}}.Encode()
	n.must(err)
	for file, content := range map[string]string{
		"/etc/flex/request.json": request, "/etc/flex/pv.json": kube.PVs(n.t, c.request()), "/dev/termination-log": "", "/faults/count": "0",
	} {
		n.must(os.WriteFile(n.root+file, []byte(content), 0o600))
	}
	command := exec.CommandContext(n.t.Context(), "/bin/setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"+n.caps, "/provision", verb)
	var out bytes.Buffer
	command.Stdout, command.Stderr, command.Env, command.Dir = &out, &out, n.environment(verb, c), "/"
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: n.root, Setpgid: true}
	n.must(command.Start())
	ended := make(chan ending, 1)
	go func() {
		_ = command.Wait()
		message, _ := os.ReadFile(n.root + "/dev/termination-log")
		ended <- ending{command.ProcessState.ExitCode(), out.String() + string(message)}
	}()
	return ended
}

// want runs a verb that must end so.
func (n *node) want(code int, verb string, c claim, words ...string) {
	n.t.Helper()
	got, says := n.try(verb, c)
	if got != code {
		n.t.Fatalf("%s of %s: exit %d, want %d: %s", verb, c.uid, got, code, says)
	}
	for _, word := range words {
		if !strings.Contains(says, word) {
			n.t.Errorf("%s of %s: %q is not in: %s", verb, c.uid, word, says)
		}
	}
}

// grownTo is what an expand reports of a volume's size. A quota counts it.
func grownTo(size int64) string { return fmt.Sprintf("%q:%d}", "capacity", size) }

// killed runs a verb with a fault at each of its calls of a program in turn: the whole script is killed before the call, or the call fails. After
// each, judge is called.
func (n *node) killed(verb, when string, c func(i int) claim, judge func(c claim, at string)) {
	n.t.Helper()
	for i := 1; ; i++ {
		own := c(i)
		_ = os.Remove(n.root + "/faults/hit")
		n.try(verb, own.with("FAULT", fmt.Sprintf("%d:%s", i, when)))
		hit, err := os.ReadFile(n.root + "/faults/hit")
		judge(own, when+" "+string(hit))
		if err != nil { // it had no so many calls
			n.t.Logf("%s of %s: %d places", when, verb, i-1)
			if i < 3 {
				n.t.Errorf("%s of %s: only %d places", when, verb, i-1)
			}
			return
		}
	}
}

// deletesTheListed fails the test if a delete of another listed volume deletes the claim's.
func (n *node) deletesTheListed(c claim) {
	n.t.Helper()
	n.want(0, "provision", c)
	before := n.left()
	c.more = map[string]string{"FLEX_LISTED_VOLUME": "pvc-" + number(9)}
	n.want(75, "delete", c, "claim: the listed volume is not the claim's")
	if left := n.left(); left != before {
		n.t.Errorf("left: %s, before: %s", left, before)
	}
	c.more = map[string]string{"FLEX_LISTED_VOLUME": c.pv()}
	n.want(0, "delete", c)
}

// fill writes so many MiB to a volume, and returns how many bytes are there.
func (n *node) fill(path string, mebibytes int) int64 {
	n.t.Helper()
	_, _ = n.tries("dd", "if=/dev/zero", "of="+path, "bs=1M", fmt.Sprintf("count=%d", mebibytes), "conv=fsync")
	info, err := os.Stat(path)
	n.must(err)
	return info.Size()
}

func (n *node) path(c claim) string { return n.base + "/" + c.pv() }

// hasPV reports whether the script has written the PV.
func (n *node) hasPV(c claim) bool {
	for _, pv := range n.api.All("persistentvolumes") {
		if pv.At("metadata", "name") == c.pv() {
			return true
		}
	}
	return false
}

// left returns what is in the directory.
func (n *node) left() string {
	return n.runs("sh", "-c", "cd ."+volumes+" && find . -mindepth 1 | sort")
}
