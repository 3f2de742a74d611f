package scaffold_test

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/conform"
	"github.com/flex-provisioner/flex-provisioner/plugin/scaffold"
)

const name = "my-filer"

// kinds are all kinds, each with the objects of its manifests.
var kinds = map[scaffold.Kind][]string{
	scaffold.Network: {
		"StorageClass my-filer", "PersistentVolume my-filer-export", "PersistentVolumeClaim my-filer-export", "ServiceAccount my-filer-provisioner",
		"ClusterRoleBinding flex-my-filer-provisioner", "ConfigMap my-filer",
	},
	scaffold.Node: {"StorageClass my-filer", "ServiceAccount my-filer-provisioner", "ClusterRoleBinding flex-my-filer-provisioner", "ConfigMap my-filer"},
}

func filesOf(t *testing.T, kind scaffold.Kind) map[string]string {
	t.Helper()
	files, err := scaffold.Files(name, kind)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestTheProvisionerIsProvokedToRefuseAClaim(t *testing.T) {
	for kind := range kinds {
		files := filesOf(t, kind)
		provocations, err := conform.ReadProvocations([]byte(files["provoke.yaml"]))
		if err != nil || *provocations["refuses"].VolumeMode != corev1.PersistentVolumeBlock || !strings.Contains(files[scaffold.Script], "[ \"$FLEX_VOLUME_MODE\" = Filesystem ] || flex refuse") {
			t.Errorf("%s: %v, %v", kind, provocations, err)
		}
	}
}

// What keeps a name of a recipe would change the recipe's objects.
func TestEachObjectHasTheNameOfTheProvisioner(t *testing.T) {
	ofRecipes := regexp.MustCompile(`nfs-(provisioner|export)|: nfs\b|directory-provisioner|node-directory|\bNAME\b|isolated|\.sh\b|configmaps/|deploy/examples`)
	for kind, objects := range kinds {
		files := filesOf(t, kind)
		if got, want := slices.Sorted(maps.Keys(files)), []string{"Dockerfile", "Makefile", "README.md", name + ".yaml", scaffold.Script, "provoke.yaml"}; !slices.Equal(got, want) {
			t.Errorf("%s: the files %q, want %q", kind, got, want)
		}
		var got []string
		for doc := range strings.SplitSeq(files[name+".yaml"], "\n---\n") {
			var object struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
				t.Fatal(err)
			}
			got = append(got, object.Kind+" "+object.Metadata.Name)
		}
		if !slices.Equal(got, objects) {
			t.Errorf("%s: the objects %q, want %q", kind, got, objects)
		}
		for file, text := range files {
			if found := ofRecipes.FindString(text); found != "" {
				t.Errorf("%s: %s has %q, which is of a recipe", kind, file, found)
			}
			if found := regexp.MustCompile(`\{\{|<no value>`).FindString(text); found != "" {
				t.Errorf("%s: %s has %q", kind, file, found)
			}
		}
	}
}

func write(t *testing.T, kind scaffold.Kind) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for file, text := range filesOf(t, kind) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTheScriptHasNoFindings(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Fatal("there is no shellcheck. Remedy: make deps")
	}
	for kind := range kinds {
		if out, err := exec.Command("shellcheck", filepath.Join(write(t, kind), scaffold.Script)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", kind, err, out)
		}
	}
}

// make runs targets with programs that note how they are called, and returns the calls.
func runMake(t *testing.T, dir string, targets ...string) string {
	t.Helper()
	bin := t.TempDir()
	for _, program := range []string{"podman", "kubectl", "a-flex"} {
		script := "#!/bin/sh\necho " + program + " \"$@\" >>" + bin + "/calls\n"
		if err := os.WriteFile(filepath.Join(bin, program), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("make", append([]string{"-C", dir, "FLEX=" + bin + "/a-flex", "BASH=/bin/sh", "BUSYBOX=/bin/sh", "BUILDER=podman"}, targets...)...)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "MAKEFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make %q: %v: %s", targets, err, out)
	}
	calls, err := os.ReadFile(filepath.Join(bin, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	return string(calls)
}

func TestTheMakefileBuildsAndAppliesTheFolder(t *testing.T) {
	for kind := range kinds {
		dir := write(t, kind)
		calls := runMake(t, dir, "image", "push", "apply", "conform")
		for _, call := range []string{
			"podman build -f Dockerfile -t localhost/my-filer-provisioner:dev root\n", "podman push localhost/my-filer-provisioner:dev\n",
			"kubectl flex validate --filename=my-filer.yaml", "kubectl apply -f my-filer.yaml\n", "kubectl flex conform my-filer --provoke=provoke.yaml\n",
		} {
			if !strings.Contains(calls, call) {
				t.Errorf("%s: the calls lack %q:\n%s", kind, call, calls)
			}
		}
		for _, flag := range []string{"--allow=", "--config-namespaces=flex-provisioner-node"} {
			if got := strings.Contains(calls, flag); got != (kind == scaffold.Node) {
				t.Errorf("%s: validate is called with %s: %t", kind, flag, got)
			}
		}
		for _, file := range []string{scaffold.Script, "bin/bash", "bin/busybox", "bin/flex"} {
			if info, err := os.Stat(filepath.Join(dir, "root", file)); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("%s: %s in the image's root: %v, %v", kind, file, info, err)
			}
		}
		script, err := os.ReadFile(filepath.Join(dir, "root", scaffold.Script))
		if err != nil || !bytes.HasPrefix(script, []byte("#!/bin/bash\n")) {
			t.Errorf("%s: the script in the image's root: %v", kind, err)
		}
	}
}

// GNU's flex is a scanner generator: without a path make would put that into the image.
func TestTheMakefileAsksForFlex(t *testing.T) {
	out, err := exec.Command("make", "-C", write(t, scaffold.Network), "root", "FLEX=").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "name flex by FLEX=PATH") {
		t.Errorf("%v: %s", err, out)
	}
}
