package plugin_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// executeWith runs a command of the plugin with a standard input, and returns what it prints, and
// its error's text.
func executeWith(in string, args ...string) (said, failed string) {
	var out bytes.Buffer
	cmd := plugin.Command(time.Now)
	cmd.SetIn(strings.NewReader(in))
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		failed = err.Error()
	}
	return out.String(), failed
}

// inFolder makes the present directory one with some files.
func inFolder(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	configJSON = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "filer", ` +
		`"namespace": "flex-provisioner", ` +
		`"labels": {"type": "provisioner-config", "storage-class": "gold"}}, ` +
		`"data": {"image": "registry/filer:v1", "service-account-name": "filer", ` +
		`"verbs": "provision,delete"}}`
	accountJSON = `{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "filer", ` +
		`"namespace": "flex-provisioner", "labels": {"flex-provisioner.io/provisioner": "true"}}}`
	classJSON = `{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", ` +
		`"metadata": {"name": "gold"}, "provisioner": "flex-provisioner.io"}`
	claimJSON = `{"apiVersion": "v1", "kind": "PersistentVolumeClaim", ` +
		`"metadata": {"name": "data"}, ` +
		`"spec": {"storageClassName": "gold", "accessModes": ["ReadWriteOnce"], ` +
		`"resources": {"requests": {"storage": "1Gi"}}}}`
	foreignJSON = `{"apiVersion": "example.com/v1", "kind": "Other", "metadata": {"name": "filer"}}`
)

// stream returns objects as a stream of JSON.
func stream(objects ...string) string { return strings.Join(objects, "\n") }

func listOf(objects ...string) string {
	return `{"apiVersion": "v1", "kind": "List", "items": [` + strings.Join(objects, ",") + `]}`
}

// nested returns objects in so many lists, one within another.
func nested(lists int, objects ...string) string {
	text := listOf(objects...)
	for range lists - 1 {
		text = listOf(text)
	}
	return text
}

// Both commands read what kubectl apply would, in each form.
func TestFilesAreReadAsKubectlReadsThem(t *testing.T) {
	all := []string{configJSON, accountJSON, classJSON, claimJSON, foreignJSON}
	list := listOf(all...)
	const documents = "\n--- # the next\n"
	files := map[string]string{
		"one/a.yaml":       configJSON,
		"one/b.yml":        "# comment\n---\n" + accountJSON + documents + classJSON,
		"one/c.json":       stream(claimJSON, foreignJSON),
		"one/d.txt":        "no: manifest",
		"one/below/e.yaml": "no: manifest",
		"one/f.yaml/g":     "",
		"documents.yaml":   strings.Join(all, documents),
		"stream.json":      stream(all...),
		"list.yaml":        list,
		"nested.yml":       nested(10, all...),
		"comments.yaml":    "# nothing\n",
		"mark.yaml":        "\ufeff" + strings.Join(all, documents),
	}
	files["lists.yaml"] = `{"apiVersion": "v1", "kind": "ConfigMapList", "items": [` +
		configJSON + `]}` + documents + strings.Join(all[1:], documents)
	files["windows.yaml"] = strings.ReplaceAll(files["documents.yaml"], "\n", "\r\n")
	inFolder(t, files)
	for name, args := range map[string][]string{
		"a directory":            {"--filename=one"},
		"files":                  {"-f", "one/a.yaml", "-f", "one/b.yml", "-f", "one/c.json"},
		"files after a comma":    {"-f", "one/a.yaml,one/b.yml,one/c.json"},
		"a pattern":              {"--filename=one/[a-b].y*ml", "--filename=one/*.json"},
		"documents":              {"--filename=documents.yaml"},
		"documents of Windows":   {"--filename=windows.yaml"},
		"a byte order mark":      {"--filename=mark.yaml"},
		"a stream of JSON":       {"--filename=stream.json"},
		"a list":                 {"--filename=list.yaml"},
		"a list of ConfigMaps":   {"--filename=lists.yaml"},
		"lists in lists":         {"--filename=nested.yml"},
		"a file without objects": {"--filename=comments.yaml", "--filename=list.yaml"},
		"the standard input":     {"--filename=-"},
	} {
		t.Run(name, func(t *testing.T) {
			said, failed := executeWith(list, append([]string{"validate"}, args...)...)
			const well = "ConfigMap flex-provisioner/filer, class gold\n0 errors, 0 warnings\n"
			if strings.Count(said, well) != 1 || failed != "" {
				t.Errorf("validate says %s %s", said, failed)
			}
			said, failed = executeWith(list, append([]string{"render"}, args...)...)
			if strings.Count(said, "image: registry/filer:v1") != 1 || failed != "" {
				t.Errorf("render says %s %s", said, failed)
			}
		})
	}
}

// A line once cost a copy of all lines before it, and this document tens of gigabytes.
func TestALongDocumentIsCopiedFewTimes(t *testing.T) {
	foreign := "apiVersion: example.com/v1\nkind: Other\ntext: |\n" + strings.Repeat("  a line\n", 60_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	said, failed := executeWith(configJSON+"\n---\n"+foreign, "validate", "-f", "-")
	runtime.ReadMemStats(&after)
	if !strings.Contains(said, "\n0 errors, ") || failed != "" {
		t.Errorf("it says %s %s", said, failed)
	}
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 200 {
		t.Errorf("a document of %d KiB allocates %d MiB", len(foreign)>>10, mib)
	}
}

// Each error of a file names the file, its line and what to do.
func TestAFileThatCannotBeReadIsNamedWithItsLine(t *testing.T) {
	files := map[string]string{
		"broken.yaml":             "# one\n---\n" + configJSON + "\n---\n\nkind: A\nmetadata:\n\tname: a\n",
		"kind.yaml":               configJSON + "\n---\nname: a\n",
		"item.yaml":               listOf(configJSON, `{"a": 1}`),
		"nested.yaml":             nested(11, configJSON),
		"separator.yaml":          configJSON + "\n--- {a: b}\n",
		"mine/kustomization.yaml": "resources: [a.yaml]",
		"mine/a.yaml":             "no: kind",
		"empty/a.txt":             "",
		"none.yaml":               accountJSON,
	}
	for name, change := range map[string][2]string{
		"number.yaml": {`"verbs"`, `"max-parallel": 3, "verbose": true, "list": [1], "verbs"`},
		"field.yaml":  {`"labels"`, `"lables"`},
		"case.yaml":   {"ConfigMap", "Configmap"},
		"label.yaml":  {"provisioner-config", "config"},
	} {
		files[name] = "---\n" + strings.Replace(configJSON, change[0], change[1], 1)
	}
	inFolder(t, files)
	for file, want := range map[string]string{
		"broken.yaml": "broken.yaml:6: error converting YAML to JSON: yaml: line 8: ",
		"number.yaml": "number.yaml:2: data has values that are no texts. " +
			`Remedy: write list: | and the text below it, max-parallel: "3", verbose: "true"`,
		"nested.yaml": "item 1 of the list: more than 10 lists are within one another. " +
			"Remedy: write their objects as documents of YAML",
		"kind.yaml":      "kind.yaml:3: it has no kind, or no apiVersion. Remedy: ",
		"item.yaml":      "item.yaml:1: item 2 of the list: it has no kind, or no apiVersion. Remedy: ",
		"separator.yaml": "separator.yaml:2: invalid Yaml document separator: {a: b}",
		"field.yaml": `field.yaml:2: strict decoding error: unknown field "metadata.lables". ` +
			"Remedy: correct the name",
		"label.yaml":  "label.yaml:2 filer. Remedy: add it under metadata.labels",
		"case.yaml":   "case.yaml:2: there is no kind Configmap of apiVersion v1. Remedy: ",
		"none.yaml":   "the files have no ConfigMap with the label type: provisioner-config. Remedy: ",
		"empty":       "the directory empty has no file with one of the extensions .json, .yaml, .yml",
		"mine":        "mine/kustomization.yaml is a kustomization. Remedy: kubectl kustomize mine, p",
		"absent.yaml": "absent.yaml does not exist. Remedy: ",
		"https://example.com/a.yaml": "Remedy: curl --fail --location https://example.com/a.yaml, " +
			"piped into this command with --filename=-",
	} {
		for _, command := range []string{"validate", "render"} {
			said, failed := executeWith("", command, "--filename="+file)
			if !strings.Contains(failed, want) || strings.Contains(failed, "\n") {
				t.Errorf("%s of %s: error %q, want one with %q; it says %q", command, file, failed, want, said)
			}
		}
	}
	_, failed := executeWith("", "validate", "--filename=number.yaml", "--filename=kind.yaml")
	if !strings.Contains(failed, "number.yaml:2") || !strings.Contains(failed, "kind.yaml:3") {
		t.Errorf("of two files that cannot be read it names %q", failed)
	}
}

// kubectl apply has --namespace, too, and without it the namespace of its context.
func TestAConfigWithoutANamespaceIsOfTheOneThatIsNamed(t *testing.T) {
	without := strings.NewReplacer(`"namespace": "flex-provisioner", `, "")
	list := without.Replace(stream(configJSON, accountJSON, classJSON, claimJSON))
	const warning = "checked as one of flex-provisioner. kubectl apply would create it in the " +
		"namespace of its context. Remedy: add metadata.namespace: flex-provisioner. " +
		"Or give both commands --namespace=flex-provisioner"
	said, failed := executeWith(list, "validate", "-f", "-")
	if !strings.Contains(joined(said), warning) || failed != "" {
		t.Errorf("it says %s %s", said, failed)
	}
	for _, flag := range []string{"--namespace=flex-provisioner", "-nflex-provisioner"} {
		said, failed := executeWith(list, "validate", "-f", "-", flag)
		if !strings.Contains(said, "0 errors, 0 warnings") || failed != "" {
			t.Errorf("with %s it says %s %s", flag, said, failed)
		}
	}
	for namespace, args := range map[string][]string{"flex-provisioner": nil, "team": {"-n", "team"}} {
		said, failed := executeWith(list, append([]string{"render", "-f", "-"}, args...)...)
		if !strings.Contains(said, "\n  namespace: "+namespace+"\n") || failed != "" {
			t.Errorf("%q: it says %s %s", args, said, failed)
		}
	}
}

// The flags are those of the Deployment, or of the command, and never a part of each.
func TestTheFlagsAreThoseOfTheDeployment(t *testing.T) {
	const deployment = `{"apiVersion": "apps/v1", "kind": "Deployment", ` +
		`"metadata": {"name": "flex-dispatcher"}, "spec": {"template": {"spec": {"containers": [` +
		`{"name": "dispatcher", "args": ["--config-namespaces=team", ` +
		`"--script-image=registry/shell:v2", "--kube-api=https://api.example"]}]}}}}`
	inTeam := strings.NewReplacer(
		`"namespace": "flex-provisioner"`, `"namespace": "team"`,
		`"image": "registry/filer:v1"`, `"script": "#!/bin/bash\necho\n"`,
		`"provisioner":`,
		`"parameters": {"flex-provisioner.io/config-namespace": "team"}, "provisioner":`,
	)
	list := inTeam.Replace(stream(configJSON, accountJSON, classJSON, claimJSON))
	for _, command := range []string{"validate", "render"} {
		said, failed := executeWith(list+deployment, command, "-f", "-")
		if failed != "" || command == "render" &&
			strings.Count(said, "image: registry/shell:v2")*strings.Count(said, "https://api.ex") == 0 {
			t.Errorf("%s says %s %s", command, said, failed)
		}
		said, failed = executeWith(list, command, "-f", "-")
		if !strings.Contains(joined(said+failed), "only those of flex-provisioner. Remedy: add its Deployment") {
			t.Errorf("%s without the Deployment says %s %s", command, said, failed)
		}
		said, failed = executeWith(list, command, "-f", "-",
			"--config-namespaces=team", "--script-image=other:v3")
		if failed != "" || command == "render" && !strings.Contains(said, "image: other:v3") {
			t.Errorf("%s with flags says %s %s", command, said, failed)
		}
		_, failed = executeWith(list+deployment, command, "-f", "-", "--config-namespaces=team")
		if !strings.Contains(failed, "Remedy: leave out --config-namespaces, or add it to the D") {
			t.Errorf("%s with both says %s", command, failed)
		}
	}
}

// Of two claims of one name the last is rendered, as kubectl apply would leave it.
func TestAJobIsRenderedForEachClaim(t *testing.T) {
	logs := strings.Replace(claimJSON, `"data"`, `"logs"`, 1)
	small := strings.Replace(claimJSON, "1Gi", "1Mi", 1)
	list := stream(small, configJSON, accountJSON, classJSON, claimJSON, logs)
	said, failed := executeWith(list, "render", "-f", "-")
	if failed != "" || strings.Count(said, "kind: Job\n") != 2 || strings.Count(said, "\n---\n") != 1 {
		t.Fatalf("it says %s %s", said, failed)
	}
	const uid = "provision-00000000-0000-4000-8000-00000000000"
	for _, text := range []string{`"name":"data"`, `"name":"logs"`, uid + "1", uid + "2", `"1Gi"`} {
		if !strings.Contains(said, text) {
			t.Errorf("no Job has %s:\n%s", text, said)
		}
	}
}

func TestAClaimThatIsNotRenderedSaysWhy(t *testing.T) {
	changed := func(old, changed string) string {
		return strings.Replace(stream(claimJSON, configJSON, accountJSON, classJSON), old, changed, 1)
	}
	const claim = "-:1: the claim data: "
	for want, text := range map[string]string{
		claim + "it names no class. Remedy: add spec": changed(`"storageClassName": "gold", `, ""),
		claim + "the files have no StorageClass other. Remedy: ": changed(`"storageClassName": "gold"`,
			`"storageClassName": "other"`),
		claim + "it is not to be provisioned: ": changed(`"spec": {`, `"spec": {"volumeName": "pvc-1", `),
		claim + "-:1: the class gold has the provisioner example.com, and not flex-": changed(
			`"provisioner": "flex-provisioner.io"`, `"provisioner": "example.com"`),
		"the files have no PersistentVolumeClaim that requests a class. Remedy: name a file": changed(
			`"storageClassName": "gold"`, `"storageClassName": ""`),
	} {
		if said, failed := executeWith(text, "render", "-f", "-"); !strings.Contains(failed, want) {
			t.Errorf("error %q, want one with %q; it says %s", failed, want, said)
		}
	}
}

// All recipes can be read at once, beside the dispatcher that serves them, and each of their
// classes has a Job.
func TestTheShippedFoldersAreValidAndRendered(t *testing.T) {
	dispatcher := shippedDispatcher(t, "", "btrfs/")
	args := []string{"--filename=../configmaps", "--filename=" + dispatcher, "--filename=-"}
	for _, pattern := range []string{"base/*.yaml", "node-directories/rbac.yaml", "examples/*.yaml"} {
		files, err := filepath.Glob("../deploy/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if base := filepath.Base(file); base != "kustomization.yaml" && base != "dispatcher.yaml" {
				args = append(args, "--filename="+file)
			}
		}
	}
	said, failed := executeWith("", append([]string{"validate"}, args...)...)
	if failed != "" || !strings.Contains(said, "\n0 errors, 0 warnings\n") {
		t.Errorf("validate: %s\n%s", failed, said)
	}
	var claims strings.Builder
	classes := regexp.MustCompile(`(?m), class (\S+)$`).FindAllStringSubmatch(said, -1)
	for _, m := range classes {
		claims.WriteString(strings.NewReplacer("gold", m[1], `"data"`, `"`+m[1]+`"`).Replace(claimJSON))
	}
	said, failed = executeWith(claims.String(), append([]string{"render"}, args...)...)
	jobs := strings.Count(said, "kind: Job\n")
	if failed != "" || len(classes) < 20 || jobs < len(classes) {
		t.Errorf("render: %s: %d Jobs of %d classes\n%s", failed, jobs, len(classes), said)
	}
}
