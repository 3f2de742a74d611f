package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// example returns the documents of the page's promise of two minutes.
func example(t *testing.T) []string {
	t.Helper()
	return strings.Split(block(t, section(t, firstImagePage, "## In two minutes"), "yaml"), "---\n")
}

// exampleScript returns the script in the page's ConfigMap.
func exampleScript(t *testing.T) string {
	t.Helper()
	var cm corev1.ConfigMap
	if err := yaml.UnmarshalStrict([]byte(example(t)[2]), &cm); err != nil {
		t.Fatal(err)
	}
	return cm.Data["script"]
}

func TestThePagesFirstConfigServesItsClass(t *testing.T) {
	documents := example(t)
	var (
		account corev1.ServiceAccount
		binding rbacv1.ClusterRoleBinding
		cm      corev1.ConfigMap
		class   storagev1.StorageClass
	)
	for i, into := range []any{&account, &binding, &cm, &class} {
		if err := yaml.UnmarshalStrict([]byte(documents[i]), into); err != nil {
			t.Fatalf("document %d: %v", i+1, err)
		}
	}
	cfg, faults := config.Parse(config.SourceOf(&cm, &class), config.Dispatcher{Provisioner: contract.ProvisionerName, ScriptImage: "i"})
	if len(faults) > 0 || len(cfg.Warnings) > 0 || len(cfg.Properties) != 1 {
		t.Errorf("faults %v, warnings %v, properties %v", faults, cfg.Warnings, cfg.Properties)
	}
	if cm.Labels[contract.LabelType] != contract.TypeConfig || cm.Labels[contract.LabelStorageClass] != class.Name || class.Provisioner != contract.ProvisionerName {
		t.Errorf("the ConfigMap's labels %v do not make it the config of the class %s of %s", cm.Labels, class.Name, class.Provisioner)
	}
	who := rbacv1.Subject{Kind: "ServiceAccount", Name: cfg.ServiceAccount, Namespace: cm.Namespace}
	if account.Name != who.Name || account.Namespace != who.Namespace || account.Labels[contract.LabelProvisioner] != "true" || !slices.Contains(binding.Subjects, who) {
		t.Errorf("the ServiceAccount %+v or the binding %+v is not for %+v", account.ObjectMeta, binding.Subjects, who)
	}
	if roles := pageText(t, "deploy/base/cinder-rbac.yaml"); !strings.Contains(roles, "name: "+binding.RoleRef.Name+"\n") {
		t.Errorf("nobody ships the role %s", binding.RoleRef.Name)
	}
}

// tools stand for the storage's, for flex and for kubectl: they note what they are asked. The
// variable FAIL is the pattern of calls that fail.
const tools = `#!/bin/bash
echo "${0##*/} $*" >> "$CALLS"
[[ "${0##*/} $1" != "flex refuse" ]] || { echo "claim: $2"; exit 65; }
[[ -z $FAIL || ! "${0##*/} $*" =~ $FAIL ]]
`

// play runs a script of the page and returns its exit code, its output and what it called.
func play(t *testing.T, script, verb string, env ...string) (code int, said string, calls string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"provision": script, "flex": tools, "kubectl": tools, "make-my-volume": tools, "remove-my-volume": tools} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(dir, "calls")
	cmd := exec.Command(filepath.Join(dir, "provision"), verb)
	cmd.Env = append([]string{
		"PATH=" + dir + ":" + os.Getenv("PATH"), "CALLS=" + log, "FAIL=",
		"FLEX_PV_NAME=pvc-u", "FLEX_SIZE=1024", "FLEX_VOLUME_MODE=Filesystem", "FLEX_FILER=filer",
	}, env...)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	noted, err := os.ReadFile(log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return code, string(out), string(noted)
}

// createsPV is the call that writes the PV, with no request before it.
const createsPV = "kubectl create --raw /api/v1/persistentvolumes?fieldValidation=Strict -f -\n"

func TestThePagesFirstScriptKeepsTheContract(t *testing.T) {
	for what, one := range map[string]struct {
		verb        string
		env         []string
		code        int
		said, calls []string
	}{
		"provision": {verb: "provision", calls: []string{
			"make-my-volume --name pvc-u --bytes 1024\n", `flex pv {"spec":{"nfs":{"server":"filer","path":"/export/pvc-u"}}}`,
		}},
		"provision, when it cannot be written": {
			verb: "provision", env: []string{"FAIL=^flex pv"}, code: 1, calls: []string{"flex pv "},
		},
		"provision, when the storage fails":   {verb: "provision", env: []string{"FAIL=^make"}, code: 1},
		"provision of what it does not serve": {verb: "provision", env: []string{"FLEX_VOLUME_MODE=Block"}, code: contract.ExitBadRequest, said: []string{contract.ClaimPrefix}},
		"delete":                              {verb: "delete", calls: []string{"remove-my-volume --name pvc-u\n"}},
		"delete, when the storage fails":      {verb: "delete", env: []string{"FAIL=^remove"}, code: 1},
		"another verb":                        {verb: "expand", code: contract.ExitUsage},
	} {
		t.Run(what, func(t *testing.T) {
			code, said, calls := play(t, exampleScript(t), one.verb, one.env...)
			if code != one.code {
				t.Errorf("exit code %d, want %d; it said %q", code, one.code, said)
			}
			for _, word := range one.said {
				if !strings.Contains(said, word) {
					t.Errorf("it said %q, which lacks %q", said, word)
				}
			}
			for _, word := range one.calls {
				if !strings.Contains(calls, word) {
					t.Errorf("it called %q, which lacks %q", calls, word)
				}
			}
		})
	}
}

// Without flex, kubectl writes the PV. A rerun finds it there.
func TestThePagesCommandsOfKubectlWriteThePV(t *testing.T) {
	script := "#!/bin/bash\nset -euo pipefail\n" + block(t, section(t, contractPage, "## flex"), "bash")
	const gets = "kubectl get --raw /api/v1/persistentvolumes/pvc-u\n"
	for fail, test := range map[string]struct {
		code int
		gets bool
	}{
		"": {0, false}, "^kubectl create": {0, true}, "^kubectl (create|get)": {1, true},
	} {
		code, said, calls := play(t, script, "provision", "FAIL="+fail, "patch={}")
		if code != test.code || strings.Contains(calls, gets) != test.gets || !strings.Contains(calls, "kubectl patch --local -f "+contract.PVFile) || !strings.Contains(calls, createsPV) {
			t.Errorf("where %q fails: exit code %d, it said %q and called %q", fail, code, said, calls)
		}
	}
}

// The page once took a flag of flex that does not exist, and no test read it.
func TestThePagesScriptIsInAValidConfig(t *testing.T) {
	var cm corev1.ConfigMap
	text := block(t, section(t, configurationPage, "#### Script"), "yaml")
	if err := yaml.UnmarshalStrict([]byte(text), &cm); err != nil {
		t.Fatal(err)
	}
	var class storagev1.StorageClass
	class.Name, class.Provisioner = "nfs", contract.ProvisionerName
	by := config.Dispatcher{Provisioner: contract.ProvisionerName, ScriptImage: "i"}
	cfg, faults := config.Parse(config.SourceOf(&cm, &class), by)
	if len(faults) > 0 || len(cfg.Warnings) > 0 || len(cfg.Properties) != 3 {
		t.Errorf("faults %v, warnings %v, properties %v", faults, cfg.Warnings, cfg.Properties)
	}
}
