package plugin_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

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

const script = `
apiVersion: v1
kind: ConfigMap
metadata: {name: filer, namespace: flex-provisioner, labels: {type: provisioner-config, storage-class: gold}}
data:
  service-account-name: filer
  verbs: provision,delete
  script: |
    #!/bin/bash
    set -euo pipefail
    "$1"
`

// validated returns what is found in manifests.
func validated(t *testing.T, text string) plugin.Validated {
	t.Helper()
	v, err := plugin.Validate(&plugin.Files{
		Names: []string{"-"}, Stdin: strings.NewReader(text), Serving: options.Serving{
			Provisioner: contract.ProvisionerName, Namespace: options.ConfigNamespace,
		},
	})
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
	const ofTeam = "flex-provisioner.io\nparameters: {flex-provisioner.io/config-namespace: team}"
	inNamespace := func(line string) string {
		return strings.ReplaceAll(strings.ReplaceAll(filer, "%s", ""), "namespace: flex-provisioner", line)
	}
	for name, tt := range map[string]struct{ text, want string }{
		"a key that is misspelt":            {strings.ReplaceAll(filer, "%s", ", maxparallel: '3'"), "max-parallel"},
		"a number that is none":             {strings.ReplaceAll(filer, "%s", ", max-parallel: twenty"), "twenty"},
		"a directory of the node":           {strings.ReplaceAll(filer, "%s", hostPath), "hostPath"},
		"one that the dispatcher allows":    {strings.ReplaceAll(filer, "%s", hostPath) + allowing, ""},
		"a ServiceAccount without a label":  {strings.ReplaceAll(filer, "%s", "") + account, "lacks the label"},
		"a class of another provisioner":    {strings.ReplaceAll(filer, "%s", "") + strings.ReplaceAll(class, "%s", "example.com/other"), "example.com/other"},
		"a namespace of no dispatcher":      {inNamespace("namespace: team"), "only those of flex-provisioner. Remedy: add its Deployment to the files"},
		"one that this dispatcher lacks":    {inNamespace("namespace: team") + allowing, "Remedy: add --config-namespaces=team to its Deployment"},
		"a class elsewhere, no namespace":   {inNamespace("annotations: {}") + strings.ReplaceAll(class, "%s", ofTeam), "Remedy: add metadata.namespace: team to the ConfigMap"},
		"another config of the class":       {strings.ReplaceAll(filer, "%s", "") + "---" + strings.Replace(script, "name: filer", "name: other", 1), "the dispatcher uses neither"},
		"a class with another namespace":    {strings.ReplaceAll(filer, "%s", "") + strings.ReplaceAll(class, "%s", ofTeam), "flex-provisioner.io/config-namespace=flex-provisioner"},
		"a script, without its dispatcher":  {script, ""},
		"one for a dispatcher without it":   {script + allowing, "add --script-image=IMAGE to its Deployment"},
		"lines that were folded":            {strings.Replace(script, "script: |", "script: >", 1), "write script: | instead of script: >"},
		"a file that is not UTF-8":          {script + "binaryData: {script: AAAA}\n", "reads no binaryData"},
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

// The ConfigMaps of the repository are what people copy, and validate as the pages show it: with the
// file alone, or beside what "kubectl kustomize deploy/node-directories" prints.
func TestTheShippedConfigsAreValid(t *testing.T) {
	files, err := filepath.Glob("../configmaps/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	dispatcher, folder := shippedDispatcher(t, "", "btrfs/"), shippedDispatcher(t, "")
	for _, file := range files {
		said, err := execute("validate", "--filename="+file)
		for _, word := range []string{"flex-provisioner-node", "deploy/node-directories", "--config-namespaces", "--allow"} {
			if err != nil && !strings.Contains(said, word) {
				t.Errorf("%s alone: the errors do not name %s:\n%s", file, word, said)
			}
		}
		const admin = "--allow=flex-provisioner-node/capability=SYS_ADMIN, as"
		said, err = execute("validate", "--filename="+folder, "--filename="+file)
		for _, word := range []string{admin, "deploy/node-directories/btrfs"} {
			if err != nil && !strings.Contains(said, word) {
				t.Errorf("%s without the component: the errors do not name %s:\n%s", file, word, said)
			}
		}
		if said, err := execute("validate", "--filename="+dispatcher, "--filename="+file); err != nil {
			t.Errorf("%s with the dispatcher: %v\n%s", file, err, said)
		}
	}
}

// The manifests of the pages validate by themselves, or say which flags they lack.
func TestTheConfigsOfThePagesAreValid(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	block := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	checked := 0
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(m[1], "type: provisioner-config") || !strings.Contains(m[1], "apiVersion:") {
				continue
			}
			file := filepath.Join(t.TempDir(), "block.yaml")
			if err := os.WriteFile(file, []byte(m[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			checked++
			said, err := execute("validate", "--filename="+file)
			if strings.Contains(said, "Addresses are keys") {
				t.Errorf("%s: %s", page, said)
			}
			if err != nil && !strings.Contains(said, "deploy/node-directories") {
				t.Errorf("%s: %v\n%s", page, err, said)
			}
		}
	}
	if checked < 3 {
		t.Errorf("%d configs were found: has their form changed?", checked)
	}
}

// shippedDispatcher writes a file with the Deployment of the base, to which the kustomizations of
// these folders of node-directories have added their flags.
func shippedDispatcher(t *testing.T, folders ...string) string {
	t.Helper()
	base, err := os.ReadFile("../deploy/base/dispatcher.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	for text := range strings.SplitSeq(string(base), "\n---\n") {
		if strings.Contains(text, "kind: Deployment") {
			if err := yaml.Unmarshal([]byte(text), &d); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := &d.Spec.Template.Spec.Containers[0]
	added := regexp.MustCompile(`value: (--[^}\s]+)\}`)
	for _, folder := range folders {
		text, err := os.ReadFile("../deploy/node-directories/" + folder + "kustomization.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range added.FindAllStringSubmatch(string(text), -1) {
			c.Args = append(c.Args, m[1])
		}
	}
	text, err := yaml.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dispatcher.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
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

// rendered is a claim with all that its Job is made of.
func rendered() string {
	return strings.ReplaceAll(filer, "%s", "") + `---
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
}

func TestRenderNamesTheNamespaceThatIsNotServed(t *testing.T) {
	text := strings.Replace(rendered(), "namespace: flex-provisioner", "namespace: team", 1)
	cmd := plugin.Command(time.Now)
	cmd.SetIn(strings.NewReader(text))
	cmd.SetArgs([]string{"render", "--filename=-"})
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "no config of the namespace team, only those of flex-provisioner") {
		t.Errorf("got %v", err)
	}
}

// An account of another tool may stand in the same files.
func TestRenderIgnoresAccountsOfOtherNamespaces(t *testing.T) {
	other := `---
apiVersion: v1
kind: ServiceAccount
metadata: {name: filer, namespace: team, labels: {flex-provisioner.io/provisioner: "true"}}
`
	cmd := plugin.Command(time.Now)
	cmd.SetIn(strings.NewReader(rendered() + other))
	cmd.SetOut(io.Discard)
	cmd.SetArgs([]string{"render", "--filename=-"})
	if err := cmd.Execute(); err != nil {
		t.Error(err)
	}
}

func TestTheJobOfAClaimIsRendered(t *testing.T) {
	var out bytes.Buffer
	cmd := plugin.Command(time.Now)
	cmd.SetIn(strings.NewReader(rendered()))
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
