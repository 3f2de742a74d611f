package shell

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/plugin/scaffold"
)

// The script of kubectl flex new is of one recipe, and its ConfigMap may be of another. That of a network
// once lacked the key base-dir, so every claim failed. The page once called a flag of flex that
// does not exist.
func TestProvisionersRunWithTheirOwnConfig(t *testing.T) {
	for name, configOf := range whole {
		t.Run(name, func(t *testing.T) {
			config := configOf(t)
			if !strings.Contains(config["pod-template"], "mountPath: "+config["base-dir"]+"}") {
				t.Errorf("the pod does not mount %q:\n%s", config["base-dir"], config["pod-template"])
			}
			p := newPod(t, contract.Provision, 1, func(_ int, r *contract.Request) { r.AccessModes = []string{"ReadWriteOnce"} })
			k := p.serve()
			for _, verb := range []string{"provision", "delete"} {
				cmd, base := p.script(name, verb)
				cmd.Env = slices.DeleteFunc(cmd.Env, func(one string) bool {
					variable, _, _ := strings.Cut(one, "=")
					return variable == "FLEX_BASE_DIR" || slices.Contains(recipes[name].properties, variable)
				})
				for key, value := range config {
					if key == "base-dir" {
						value = base // in place of the pod's own
					}
					cmd.Env = append(cmd.Env, contract.EnvName(key)+"="+value)
				}
				if code := exitOf(t, cmd.Run()); code != contract.ExitDone {
					t.Fatalf("%s: exit %d: %s", verb, code, &p.says)
				}
				if made, err := os.ReadDir(base); err != nil || (len(made) == 1) != (verb == "provision") {
					t.Errorf("%s: the volumes are %v, %v", verb, made, err)
				}
			}
			if len(k.pvs) != 1 {
				t.Errorf("there are %d PVs", len(k.pvs))
			}
		})
	}
}

// newConfig returns the ConfigMap that kubectl flex new writes.
func newConfig(t *testing.T, kind scaffold.Kind) map[string]string {
	t.Helper()
	files, err := scaffold.Files("my-filer", kind)
	must(t, err)
	for text := range strings.SplitSeq(files["my-filer.yaml"], "\n---\n") {
		var object struct {
			Kind string
			Data map[string]string
		}
		must(t, yaml.Unmarshal([]byte(text), &object))
		if object.Kind == "ConfigMap" {
			return object.Data
		}
	}
	t.Fatal("there is no ConfigMap")
	return nil
}

// pageConfig returns the data of the ConfigMap that docs/configuration.md#script shows.
func pageConfig(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../docs/configuration.md")
	must(t, err)
	_, text, _ := strings.Cut(string(page), "\n#### Script\n\n```yaml\n")
	text, _, _ = strings.Cut(text, "\n```\n")
	var object struct{ Data map[string]string }
	must(t, yaml.UnmarshalStrict([]byte(text), &object))
	return object.Data
}
