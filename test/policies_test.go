package test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	dispatcherpolicies "github.com/flex-provisioner/flex-provisioner/test/policies"
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
	for _, name := range []string{"flex-provisioner-pv", "flex-provisioner-secret", "flex-pv-source", "flex-provisioner-gate", "flex-provisioner-level", "flex-provisioner-record", "flex-provisioner-record-pods", "flex-provisioner-record-revisions", "flex-provisioner-other-pods", "flex-config"} {
		if !strings.Contains(texts[name], "['flex-provisioner', '"+nodeDirectories+"'") && !strings.Contains(texts[name], "[flex-provisioner, "+nodeDirectories) {
			t.Errorf("the policy %s does not name the config namespaces", name)
		}
	}
}

// What the code calls the gate, the label and the rest, the policies call it too.
func TestPoliciesUseTheNamesOfTheCode(t *testing.T) {
	texts, _ := policies(t)
	for name, words := range map[string][]string{
		"flex-provisioner-gate": {"'" + jobs.GateConfirm + "'", "'" + jobs.LabelVerb + "'"},
		"flex-dispatcher-pv":    {"'" + contract.FinalizerStorage + "'", "'" + contract.AnnClaimUID + "'", "'" + contract.AnnProvisionedBy + "'", "\"'" + contract.ProvisionerName + "'\""},
		"flex-dispatcher-claim": {"'" + storagehelpers.AnnStorageProvisioner + "'", "'" + storagehelpers.AnnBetaStorageProvisioner + "'", "\"'" + contract.ProvisionerName + "'\""},
		"flex-provisioner-pv": {
			"'" + contract.FinalizerStorage + "'", "'" + contract.AnnClaimUID + "'", "'" + contract.AnnRevision + "'", "'" + contract.AnnProvisionedBy + "'",
			"\"'" + contract.ProvisionerName + "'\"", "'" + pv.AnnVolumeID + "', '" + pv.AnnAttachment + "'",
		},
		"flex-provisioner-secret": {"['" + contract.LabelClaimUID + "', '" + contract.LabelStorageClass + "']"},
		"flex-provisioner-record": {
			"'" + jobs.LabelMember + "'", "'" + config.LabelManagedBy + "'", "'" + config.ManagedBy + "'", "'" + jobs.AnnRecord + "'", "'" + jobs.AnnConfirmed + "'",
			"'" + jobs.AnnUIDs + "'", "'" + contract.AnnRevision + "'", "'" + jobs.FinalizerRecord + "' in ", "['" + jobs.AnnForget + "', '" + jobs.AnnRetry + "']", "gate.name == '" + jobs.GateConfirm + "'",
		},
		"flex-provisioner-record-pods": {
			"'" + config.LabelManagedBy + "'", "'" + config.ManagedBy + "'", "'" + contract.Domain + "'", "['" + batchv1.ControllerUidLabel + "', '" + batchv1.JobNameLabel + "', 'controller-uid']",
			"['" + config.LabelManagedBy + "', '" + batchv1.ControllerUidLabel + "', '" + batchv1.JobNameLabel + "', 'controller-uid']",
		},
		"flex-provisioner-record-revisions": {"'" + config.LabelManagedBy + "'", "'" + config.ManagedBy + "'"},
		"flex-provisioner-other-pods":       {"'" + config.LabelManagedBy + "'", "'" + config.ManagedBy + "'", contract.Domain},
		"flex-config": {
			"['type'].orValue('') == '" + contract.TypeConfig + "'", celList(config.RunAnywhere, config.RunOnSelected), celList(config.WaitForNode, config.AnyNode, config.ForgetVolume),
			celList(config.ContainerWrites, config.DispatcherWrites), "['" + contract.SourceClaim + "']", celList(contract.Verbs()...),
		},
		"flex-pv-source": {"'" + contract.AnnClaimUID + "'", "'" + contract.ProvisionerName + "'"},
	} {
		for _, word := range words {
			if !strings.Contains(texts[name], word) {
				t.Errorf("the policy %s does not name %s", name, word)
			}
		}
	}
}

// celList returns words as a list of CEL.
func celList[W ~string](words ...W) string {
	var out []string
	for _, word := range words {
		out = append(out, "'"+string(word)+"'")
	}
	return "[" + strings.Join(out, ", ") + "]"
}

var quotedKey = regexp.MustCompile(`'([^' ]+/[^' ]+)'`)

// What the dispatcher writes on claims in any scenario of the tests is among the annotations that
// its policy lets it change: test/policies compares each write with the same list.
func TestDispatchersPolicyListsTheAnnotationsThatItWrites(t *testing.T) {
	_, specs := policies(t)
	const name = "flex-dispatcher-claim"
	var listed []string
	list := func(expression string) {
		for _, m := range quotedKey.FindAllStringSubmatch(expression, -1) {
			listed = append(listed, m[1])
		}
	}
	for _, v := range specs[name].Variables {
		if v.Name == "results" {
			list(v.Expression)
		}
	}
	for _, v := range specs[name].Validations {
		if strings.Contains(v.Expression, "variables.before.all(key, ") {
			list(v.Expression)
		}
	}
	slices.Sort(listed)
	if want := slices.Sorted(slices.Values(dispatcherpolicies.AnnotationsOfClaims)); !slices.Equal(slices.Compact(listed), want) {
		t.Errorf("the policy %s lists %q, and the dispatcher writes %q", name, listed, want)
	}
}

// The driver of the example is listed, so that its Secrets are admitted as they are shipped.
func TestSecretPolicyListsTheDriverOfTheExample(t *testing.T) {
	driver := regexp.MustCompile(`flex-driver: (\S+)`).FindStringSubmatch(content(t, "configmaps/cinder-flexvolume.yaml"))
	texts, _ := policies(t)
	if len(driver) != 2 || !strings.Contains(texts["flex-provisioner-secret"], "['"+driver[1]+"']") {
		t.Errorf("provisioner-secret-policy.yaml does not list the driver %q", driver)
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
		if !strings.Contains(texts["flex-pv-source"], "'"+path+"/' + object.metadata.name") {
			t.Errorf("deploy/base/pv-source-policy.yaml lacks the prefix %s", path)
		}
	}
}

// The component for btrfs allows one capability more, in the dispatcher and in the policy. Its patch
// names a place in a list: another rule there must not be replaced.
func TestComponentForBtrfsAddsOneCapabilityToThePolicyOnPods(t *testing.T) {
	const place, more = 4, "'SYS_ADMIN', "
	component := read(t, "node-directories", "btrfs", "kustomization.yaml")
	if flags := allowance.FindAllStringSubmatch(component, -1); len(flags) != 1 || flags[0][1] != nodeDirectories+"/capability=SYS_ADMIN" {
		t.Errorf("its flags are %q", flags)
	}
	_, specs := policies(t)
	rule := specs["flex-provisioner-node-pods"].Validations[place]
	if !strings.Contains(component, "path: /spec/validations/4/message\n        value: "+rule.Message+"\n") {
		t.Errorf("it does not test for the message %q", rule.Message)
	}
	patched := strings.Join(strings.Fields(component), " ")
	shipped := strings.Join(strings.Fields(rule.Expression), " ")
	if want := strings.Replace(shipped, "'NET_BIND", more+"'NET_BIND", 1); !strings.HasSuffix(patched, want) {
		t.Errorf("its expression is not %s", want)
	}
}

// What only a newer Kubernetes has is in a component: kubectl applies the rest of a kustomization
// without it, so the base must be safe alone.
func TestOnlyTheComponentForClaimCreatorsNeedsMutatingPolicies(t *testing.T) {
	for _, file := range tracked(t, ".yaml") {
		short, is := strings.CutPrefix(file, "deploy/")
		if !is || strings.HasPrefix(short, "claim-creator/") {
			continue
		}
		for line := range strings.Lines(read(t, short)) {
			text, _, _ := strings.Cut(line, "#")
			if strings.Contains(text, "MutatingAdmissionPolicy") || strings.Contains(text, "--trust-username") {
				t.Errorf("%s has the line %q, which belongs to a component of its own", file, strings.TrimSpace(line))
			}
		}
	}
}

// The guard refuses what the component does not write, so both must write the same.
func TestGuardOfClaimCreatorsAcceptsTheStamp(t *testing.T) {
	stamp, guard := read(t, "claim-creator", "policy.yaml"), read(t, "base", "claim-creator-policy.yaml")
	for _, want := range []string{
		"'" + jobs.AnnUsername + "': request.userInfo.username,",
		"'" + jobs.AnnGroups + "': has(request.userInfo.groups) ? request.userInfo.groups.filter(g, !g.contains(',')).join(',') : ''",
	} {
		if !strings.Contains(stamp, want) || !strings.Contains(guard, want) {
			t.Errorf("stamp and guard do not both have %s", want)
		}
	}
}

var allowance = regexp.MustCompile(`--allow=(\S+)\}`)

// The configs that are shipped need no more of a node than the dispatcher that is shipped allows.
func TestShippedConfigsAreAllowed(t *testing.T) {
	checked := 0
	for _, file := range tracked(t, ".yaml") {
		if !strings.HasPrefix(file, "configmaps/") {
			continue
		}
		for text := range strings.SplitSeq(read(t, "..", file), "\n---\n") {
			if mustAllow(t, file, text) {
				checked++
			}
		}
	}
	if checked < 8 {
		t.Errorf("%d configs were found: has their form changed?", checked)
	}
}

// The configs of the pages are served, by the namespaces and the flags as they are shipped.
func TestConfigsOfThePagesAreServed(t *testing.T) {
	for page, want := range map[string]int{"docs/clusters.md": 1, "docs/configuration.md": 1, "docs/first-image.md": 1} {
		checked := 0
		for _, block := range yamlBlock.FindAllStringSubmatch(content(t, page), -1) {
			for text := range strings.SplitSeq(block[1], "\n---\n") {
				if mustAllow(t, page, text) {
					checked++
				}
			}
		}
		if checked < want {
			t.Errorf("%s: %d configs were found, not %d: has their form changed?", page, checked, want)
		}
	}
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// mustAllow reports whether a text is a config, and checks that a dispatcher with the flags of
// deploy/node-directories serves it. Those of btrfs and xfs need its component.
func mustAllow(t *testing.T, file, text string) bool {
	t.Helper()
	allowances := jobs.Allowances{}
	flags := read(t, "node-directories", "kustomization.yaml")
	if strings.HasSuffix(file, "btrfs.yaml") || strings.HasSuffix(file, "xfs.yaml") {
		flags += read(t, "node-directories", "btrfs", "kustomization.yaml")
	}
	for _, m := range allowance.FindAllStringSubmatch(flags, -1) {
		if err := allowances.Add(m[1]); err != nil {
			t.Fatal(err)
		}
	}
	var cm corev1.ConfigMap
	if err := yaml.Unmarshal([]byte(text), &cm); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if cm.Kind != "ConfigMap" || cm.Labels[contract.LabelType] != contract.TypeConfig {
		return false
	}
	class := &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: cm.Labels[contract.LabelStorageClass]},
		ReclaimPolicy:     new(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}
	cfg, faults := config.Parse(config.SourceOf(&cm, class), config.Dispatcher{Provisioner: contract.ProvisionerName, ScriptImage: "i"})
	if faults = append(faults, jobs.Check(cfg, allowances)...); len(faults) > 0 {
		t.Errorf("%s, %s: %v", file, cm.Name, faults.ToAggregate())
	}
	return true
}
