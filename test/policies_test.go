package test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// nodeDirectories is the namespace whose pods may mount directories of a node.
const nodeDirectories = "flex-provisioner-node"

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{repository, "deploy"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// policyFiles returns the files of policies, relative to deploy.
func policyFiles(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, file := range tracked(t, "-policy.yaml") {
		if short, found := strings.CutPrefix(file, "deploy/"); found {
			out = append(out, short)
		}
	}
	return out
}

// policies returns the admission policies under deploy, by name, as text and decoded.
func policies(t *testing.T) (texts map[string]string, specs map[string]admissionregistrationv1.ValidatingAdmissionPolicySpec) {
	t.Helper()
	texts, specs = map[string]string{}, map[string]admissionregistrationv1.ValidatingAdmissionPolicySpec{}
	for _, file := range policyFiles(t) {
		for text := range strings.SplitSeq(read(t, file), "\n---\n") {
			var p admissionregistrationv1.ValidatingAdmissionPolicy
			if err := yaml.Unmarshal([]byte(text), &p); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if p.Kind != "ValidatingAdmissionPolicy" {
				continue
			}
			if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			texts[p.Name], specs[p.Name] = text, p.Spec
		}
	}
	return texts, specs
}

// A policy that is not applied, not bound, or fails open guards nothing.
func TestEveryPolicyIsAppliedBoundAndFailsClosed(t *testing.T) {
	_, specs := policies(t)
	if len(specs) < 6 {
		t.Fatalf("%d policies were found: has their form changed?", len(specs))
	}
	for name, spec := range specs {
		if spec.FailurePolicy == nil || *spec.FailurePolicy != admissionregistrationv1.Fail {
			t.Errorf("the policy %s does not fail closed", name)
		}
	}
	for _, file := range policyFiles(t) {
		text := read(t, file)
		kinds := regexp.MustCompile(`(?m)^kind: ValidatingAdmissionPolicy(Binding)?$`).FindAllStringSubmatch(text, -1)
		bindings := slices.DeleteFunc(slices.Clone(kinds), func(m []string) bool { return m[1] == "" })
		if len(kinds) != 2*len(bindings) || strings.Count(text, "validationActions: [Deny]") != len(bindings) {
			t.Errorf("%s: each policy needs a binding that denies", file)
		}
		if base := filepath.Base(file); !strings.Contains(read(t, filepath.Dir(file), "kustomization.yaml"), "- "+base+"\n") {
			t.Errorf("%s: the kustomization beside it does not apply it", file)
		}
	}
}

// The policies that guard what provisioning pods do name all config namespaces.
func TestPoliciesOfProvisionersNameEveryConfigNamespace(t *testing.T) {
	texts, _ := policies(t)
	for _, name := range []string{"flex-provisioner-pv", "flex-provisioner-secret", "flex-node-directory", "flex-provisioner-gate"} {
		lists := strings.Count(texts[name], "['flex-provisioner', '"+nodeDirectories+"']") + strings.Count(texts[name], "[flex-provisioner, "+nodeDirectories+"]")
		if lists == 0 {
			t.Errorf("the policy %s does not name the config namespaces", name)
		}
	}
}

// What the code calls the gate, the label and the rest, the policies call it too.
func TestPoliciesUseTheNamesOfTheCode(t *testing.T) {
	texts, _ := policies(t)
	for name, words := range map[string][]string{
		"flex-provisioner-gate": {"'" + jobs.GateConfirm + "'", "'" + jobs.LabelVerb + "'"},
		"flex-dispatcher-pv":    {"'" + contract.FinalizerStorage + "'", "'" + contract.AnnClaimUID + "'"},
		"flex-node-directory":   {"'" + contract.AnnClaimUID + "'", "'" + contract.ProvisionerName + "'"},
	} {
		for _, word := range words {
			if !strings.Contains(texts[name], word) {
				t.Errorf("the policy %s does not name %s", name, word)
			}
		}
	}
}

var allowed = regexp.MustCompile(`--allow=` + nodeDirectories + `/(host-path|capability)=(\S+)\}`)

// The policy on pods allows what the dispatcher's --allow does, and no other path or capability.
func TestPodPolicyMirrorsTheDispatchersAllowances(t *testing.T) {
	values := map[string][]string{"capability": {}, "host-path": {}}
	for _, m := range allowed.FindAllStringSubmatch(read(t, "node-directories", "kustomization.yaml"), -1) {
		values[m[1]] = append(values[m[1]], m[2])
	}
	texts, _ := policies(t)
	for _, want := range []string{
		"v.hostPath.path in ['" + strings.Join(values["host-path"], "', '") + "']",
		"one in ['" + strings.Join(append(values["capability"], "NET_BIND_SERVICE"), "', '") + "']", // which "restricted" allows
	} {
		if !strings.Contains(texts["flex-provisioner-node-pods"], want) {
			t.Errorf("deploy/node-directories/pod-policy.yaml lacks %s, which kustomization.yaml allows", want)
		}
	}
	for _, path := range values["host-path"] {
		if !strings.Contains(texts["flex-node-directory"], "'"+path+"/' + object.metadata.name") {
			t.Errorf("deploy/base/node-directory-policy.yaml lacks the prefix %s", path)
		}
	}
}
