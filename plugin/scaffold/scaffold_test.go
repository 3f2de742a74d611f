package scaffold_test

import (
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
		"StorageClass my-filer", "PersistentVolume my-filer-export", "PersistentVolumeClaim my-filer-export",
		"ServiceAccount my-filer-provisioner", "ClusterRoleBinding flex-my-filer-provisioner",
		"ClusterRole flex-my-filer-batch", "ClusterRoleBinding flex-my-filer-batch", "ConfigMap my-filer",
	},
	scaffold.Node: {
		"ServiceAccount my-filer-provisioner", "ClusterRoleBinding flex-my-filer-provisioner",
		"StorageClass my-filer", "ConfigMap my-filer",
	},
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
		provocations, err := conform.ReadProvocations([]byte(files["provoke.txt"]))
		if err != nil || *provocations["refuses"].VolumeMode != corev1.PersistentVolumeBlock || !strings.Contains(scriptOf(t, files), "[ \"$FLEX_VOLUME_MODE\" = Filesystem ] ||\n    flex refuse") {
			t.Errorf("%s: %v, %v", kind, provocations, err)
		}
	}
}

// shown is the recipe that README.md names as an example.
const shown = "`configmaps/xfs.yaml` of\n   flex-provisioner"

// What keeps a name of a recipe would change the recipe's objects.
func TestEachObjectHasTheNameOfTheProvisioner(t *testing.T) {
	ofRecipes := regexp.MustCompile(`nfs-(provisioner|export)|: nfs\b|directory-provisioner|node-directory|\bNAME\b|isolated|\.sh\b|configmaps/|deploy/examples`)
	for kind, objects := range kinds {
		files := filesOf(t, kind)
		if got, want := slices.Sorted(maps.Keys(files)), []string{"README.md", name + ".yaml", "provoke.txt"}; !slices.Equal(got, want) {
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
			if found := ofRecipes.FindString(strings.ReplaceAll(text, shown, "")); found != "" {
				t.Errorf("%s: %s has %q, which is of a recipe", kind, file, found)
			}
			if found := regexp.MustCompile(`\{\{|<no value>`).FindString(text); found != "" {
				t.Errorf("%s: %s has %q", kind, file, found)
			}
		}
	}
}

// configOf returns the ConfigMap of a provisioner.
func configOf(t *testing.T, files map[string]string) (cm corev1.ConfigMap) {
	t.Helper()
	documents := strings.Split(files[name+".yaml"], "\n---\n")
	if err := yaml.UnmarshalStrict([]byte(documents[len(documents)-1]), &cm); err != nil {
		t.Fatal(err)
	}
	return cm
}

func scriptOf(t *testing.T, files map[string]string) string {
	t.Helper()
	return configOf(t, files).Data["script"]
}

// A storage that many nodes reach serves claims together, by a right that can be misused. The files
// say so where they have it. Of a node the token would be on every node, for few claims at a time.
func TestBatchesComeWithTheirRightAndWithWhatItGivesAway(t *testing.T) {
	for kind := range kinds {
		files := filesOf(t, kind)
		batches := kind == scaffold.Network
		if got := configOf(t, files).Data["batch-size"]; (got == "16") != batches {
			t.Errorf("%s: batch-size is %q", kind, got)
		}
		manifests := strings.ReplaceAll(files[name+".yaml"], "\n# ", " ")
		page := strings.Join(strings.Fields(files["README.md"]), " ")
		for text, in := range map[string]string{
			"resources: [classes]\n    resourceNames: [my-filer]\n    verbs: [batch]":                   manifests,
			"kind: ClusterRole, name: flex-my-filer-batch}":                                             manifests,
			"with the verb batch a stolen token of a pod can bind a PersistentVolume to another claim":  manifests,
			"a stolen token of its pod can bind a PersistentVolume to another claim":                    page,
			"delete `batch-size`, and the ClusterRole and the ClusterRoleBinding `flex-my-filer-batch`": page,
		} {
			if strings.Contains(in, text) != batches {
				t.Errorf("%s: it has %q: %t", kind, text, !batches)
			}
		}
	}
}

// The image is that of the release, and Flux leaves the variables of the script alone.
func TestTheScriptIsTextOfTheConfigMap(t *testing.T) {
	for kind := range kinds {
		cm := configOf(t, filesOf(t, kind))
		if image, has := cm.Data["image"]; has {
			t.Errorf("%s: the ConfigMap names the image %s", kind, image)
		}
		if !strings.HasPrefix(cm.Data["script"], "#!/bin/bash\n# The provisioner of the class my-filer.\nset -euo pipefail\n") {
			t.Errorf("%s: the script begins with %.80q", kind, cm.Data["script"])
		}
		if cm.Annotations["kustomize.toolkit.fluxcd.io/substitute"] != "disabled" {
			t.Errorf("%s: the annotations are %v", kind, cm.Annotations)
		}
	}
}

// Those of a node need flags of the dispatcher, with which validate judges them.
func TestThePageValidatesWithTheFlagsThatTheConfigNeeds(t *testing.T) {
	for kind := range kinds {
		page := filesOf(t, kind)["README.md"]
		for _, flag := range []string{"--allow=", "--config-namespaces=flex-provisioner-node"} {
			if got := strings.Contains(page, flag); got != (kind == scaffold.Node) {
				t.Errorf("%s: validate is called with %s: %t", kind, flag, got)
			}
		}
	}
}

// A layout of one's own passed every test but that of a cluster.
func TestThePageOfANodeSaysWhichPathAVolumeHas(t *testing.T) {
	for kind := range kinds {
		files := filesOf(t, kind)
		const path = "`flex pv --local \"/var/lib/flex-volumes/$FLEX_PV_NAME\"`"
		if got := strings.Contains(files["README.md"], path); got != (kind == scaffold.Node) {
			t.Errorf("%s: it says so: %t", kind, got)
		}
		if page := files["README.md"]; strings.Index(page, "kubectl flex try "+name+".yaml") > strings.Index(page, "kubectl apply") {
			t.Errorf("%s: the first step is not to try it", kind)
		}
	}
}

func TestTheScriptHasNoFindings(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Fatal("there is no shellcheck. Remedy: make deps")
	}
	for kind := range kinds {
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte(scriptOf(t, filesOf(t, kind))), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("shellcheck", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", kind, err, out)
		}
	}
}
