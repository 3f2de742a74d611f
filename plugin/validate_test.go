package plugin_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

const filer = `
apiVersion: v1
kind: ConfigMap
metadata: {name: filer, namespace: flex-provisioner, labels: {type: provisioner-config, storage-class: gold}}
data: {image: registry/filer:v1, service-account-name: filer, verbs: "provision,delete"%s}
`

// validated returns what is found in manifests.
func validated(t *testing.T, text string) plugin.Validated {
	t.Helper()
	v, err := plugin.Validate([]string{"-"}, strings.NewReader(text), options.Serving{Provisioner: contract.ProvisionerName})
	if err != nil {
		t.Fatal(err)
	}
	return v.Configs[0]
}

func TestFaultsOfAConfigAreFoundInItsFile(t *testing.T) {
	const account = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: filer, namespace: flex-provisioner}\n"
	const class = "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: gold}\nprovisioner: %s\n"
	const hostPath = `, pod-template: '{"spec":{"volumes":[{"name":"a","hostPath":{"path":"/srv"}}]}}'`
	const allowing = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: flex-dispatcher}\nspec: {template: {spec: {containers: [{name: dispatcher, args: [--allow=flex-provisioner/host-path=/srv]}]}}}\n"
	for name, tt := range map[string]struct{ text, want string }{
		"a key that is misspelt":            {strings.ReplaceAll(filer, "%s", ", maxparallel: '3'"), "max-parallel"},
		"a number that is none":             {strings.ReplaceAll(filer, "%s", ", max-parallel: twenty"), "twenty"},
		"a directory of the node":           {strings.ReplaceAll(filer, "%s", hostPath), "hostPath"},
		"one that the dispatcher allows":    {strings.ReplaceAll(filer, "%s", hostPath) + allowing, ""},
		"a ServiceAccount without a label":  {strings.ReplaceAll(filer, "%s", "") + account, "lacks the label"},
		"a class of another provisioner":    {strings.ReplaceAll(filer, "%s", "") + strings.ReplaceAll(class, "%s", "example.com/other"), "example.com/other"},
		"nothing":                           {strings.ReplaceAll(filer, "%s", ""), ""},
		"nothing, beside a custom resource": {strings.ReplaceAll(filer, "%s", "") + "---\napiVersion: example.com/v1\nkind: Other\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(validated(t, tt.text).Errors, "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// The ConfigMaps of the repository are what people copy.
func TestTheShippedConfigsAreValid(t *testing.T) {
	files, err := filepath.Glob("../configmaps/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		var out bytes.Buffer
		cmd := plugin.Command(time.Now)
		cmd.SetOut(&out)
		args := []string{"validate", "--filename", file}
		for _, allowed := range allowedIn(t) {
			args = append(args, "--allow", allowed)
		}
		cmd.SetArgs(args)
		if err := cmd.Execute(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out.String())
		}
	}
}

// allowedIn returns the allowances of all examples.
func allowedIn(t *testing.T) (out []string) {
	t.Helper()
	one, err := filepath.Glob("../deploy/*/*.yaml")
	two, err2 := filepath.Glob("../deploy/*/*/*.yaml")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	for _, file := range slices.Concat(one, two) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if _, value, found := strings.Cut(strings.TrimSpace(line), "--allow="); found {
				out = append(out, strings.Trim(value, `"' ]}`))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestFilesWithoutAConfigAreAnError(t *testing.T) {
	cmd := plugin.Command(time.Now)
	cmd.SetIn(strings.NewReader("apiVersion: v1\nkind: Secret\n"))
	cmd.SetArgs([]string{"validate", "-f", "-"})
	err := cmd.Execute()
	if err == nil || errors.Is(err, plugin.ErrFound) || plugin.ExitCode(err) != plugin.ExitFailed {
		t.Errorf("got %v", err)
	}
}

func TestAFileIsNamedByItsFlag(t *testing.T) {
	for _, command := range []string{"validate", "render"} {
		for want, args := range map[string][]string{
			`required flag(s) "filename"`:                          {command},
			"filer.yaml is no flag: a file is named by --filename": {command, "filer.yaml"},
		} {
			if said, err := execute(args...); err == nil || !strings.Contains(err.Error(), want) || plugin.ExitCode(err) != plugin.ExitFailed {
				t.Errorf("%q: error %v, want one with %q; it says %q", args, err, want, said)
			}
		}
	}
}

func TestTheJobOfAClaimIsRendered(t *testing.T) {
	text := strings.ReplaceAll(filer, "%s", "") + `---
apiVersion: v1
kind: ServiceAccount
metadata: {name: filer, namespace: flex-provisioner, labels: {flex-provisioner.io/provisioner: "true"}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: gold}
provisioner: flex-provisioner.io
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storageClassName: gold, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
	var out bytes.Buffer
	cmd := plugin.Command(time.Now)
	cmd.SetIn(strings.NewReader(text))
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"render", "-f", "-"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind: Job", "image: registry/filer:v1", `"selectedNode":"node1"`, "namespace: flex-provisioner", `"name":"pvc-00000000-`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the Job lacks %q:\n%s", want, out.String())
		}
	}
}
