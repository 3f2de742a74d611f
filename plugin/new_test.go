package plugin_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// execute runs a command of the plugin, and returns what it prints.
func execute(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := plugin.Command(time.Now)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

// The folder is validated as kubectl apply reads it. Its page has the flags with which its
// manifests are validated.
func TestANewProvisionerIsValid(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, kind := range map[string]string{"my-network": "network", "my-node": "node", "123": "network", "no": "node"} {
		namespace := map[string]string{"network": "flex-provisioner", "node": "flex-provisioner-node"}[kind]
		if said, err := execute("new", name, "--"+kind); err != nil || !strings.Contains(said, "README.md") {
			t.Fatalf("%v: %s", err, said)
		}
		page, err := os.ReadFile(filepath.Join(name, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		serving := options.Serving{Provisioner: contract.ProvisionerName, Namespace: options.ConfigNamespace}
		for word := range strings.FieldsSeq(string(page)) {
			if allowed, found := strings.CutPrefix(word, "--allow="); found {
				serving.Allow = append(serving.Allow, allowed)
			}
			if further, found := strings.CutPrefix(word, "--config-namespaces="); found {
				serving.ConfigNamespaces = append(serving.ConfigNamespaces, further)
			}
		}
		files := &plugin.Files{Names: []string{name}, Serving: serving}
		v, err := plugin.Validate(files)
		if err != nil {
			t.Fatal(err)
		}
		if c := v.Configs[0]; len(v.Configs) != 1 || c.Config != namespace+"/"+name || c.Class != name || len(c.Errors) > 0 || len(c.Warnings) > 0 {
			t.Errorf("%+v", v.Configs)
		}
	}
}

// With the name cinder a new script once had the permissions of cinder-provisioner, and kubectl delete -f of its
// manifests took them from both.
func TestANewProvisionerHasNoNameOfAShippedOne(t *testing.T) {
	folders := []string{"../configmaps", "../deploy/base", "../deploy/examples", "../deploy/node-directories"}
	kind, name := regexp.MustCompile(`(?m)^kind: (StorageClass|ServiceAccount|ConfigMap)$`), regexp.MustCompile(`(?m)^  name: (\S+?)(-provisioner)?$`)
	found := map[string]bool{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for one := range strings.SplitSeq(string(text), "\n---\n") {
				if m := name.FindStringSubmatch(one); m != nil && kind.MatchString(one) {
					found[m[1]] = true
				}
			}
		}
	}
	t.Chdir(t.TempDir())
	for name := range found {
		if _, err := execute("new", name, "--node"); err == nil || !strings.Contains(err.Error(), "the name "+name+": ") {
			t.Errorf("new %s: %v", name, err)
		}
	}
	if len(found) < 15 {
		t.Errorf("only %d names are found: has the form of the manifests changed?", len(found))
	}
}

func TestNewChangesNothingThatExists(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("taken", 0o700); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"taken exists already":         {"taken", "--node"},
		"the name My_Filer: ":          {"My_Filer", "--node"},
		"the name ../filer: ":          {"../filer", "--network"},
		"at least one of the flags":    {"filer"},
		"none of the others can be":    {"filer", "--node", "--network"},
		"accepts 1 arg(s), received 0": {"--node"},
		"accepts 1 arg(s), received 2": {"filer", "other", "--node"},
		"must be no more than 63":      {strings.Repeat("a", 64), "--node"},
	} {
		said, err := execute(append([]string{"new"}, args...)...)
		if err == nil || !strings.Contains(err.Error(), want) || plugin.ExitCode(err) != plugin.ExitFailed {
			t.Errorf("new %q: error %v, want one with %q; it says %q", args, err, want, said)
		}
	}
	if left, err := filepath.Glob("*/*"); err != nil || len(left) > 0 {
		t.Errorf("it writes %q, %v", left, err)
	}
	if left, err := filepath.Glob("*"); err != nil || len(left) != 1 {
		t.Errorf("it makes %q, %v", left, err)
	}
}
