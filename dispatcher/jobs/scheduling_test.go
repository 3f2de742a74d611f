package jobs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// terms returns the required node selector terms of a pod in short: "a,b | c" means a and b, or c.
func terms(spec corev1.PodSpec) string {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return ""
	}
	var out []string
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		var all []string
		for _, e := range append(term.MatchExpressions, term.MatchFields...) {
			all = append(all, e.Key+"="+strings.Join(e.Values, "+"))
		}
		out = append(out, strings.Join(all, ","))
	}
	return strings.Join(out, " | ")
}

const (
	racks = `{matchExpressions: [{key: rack, operator: In, values: ["1"]}]}, {matchExpressions: [{key: rack, operator: In, values: ["2"]}]}`
	own   = "spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: ["
)

func onNodes(names ...string) *corev1.VolumeNodeAffinity {
	selector := &corev1.NodeSelector{}
	for _, name := range names {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "host", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
		})
	}
	return &corev1.VolumeNodeAffinity{Required: selector}
}

func TestRunGoesToItsNodes(t *testing.T) {
	for name, test := range map[string]struct {
		runOn, template, node string
		affinity              *corev1.VolumeNodeAffinity
		want                  string
	}{
		"anywhere":                          {"any", "", "node-1", onNodes("a"), ""},
		"nobody selected a node":            {"selected-node", "", "", nil, ""},
		"the scheduler's choice":            {"selected-node", "", "node-1", nil, "metadata.name=node-1"},
		"the volume's node":                 {"selected-node", "", "node-1", onNodes("a"), "host=a"},
		"one of the volume's nodes":         {"selected-node", "", "", onNodes("a", "b"), "host=a | host=b"},
		"the template's, anywhere":          {"any", own + racks + "]}}}}", "node-1", nil, "rack=1 | rack=2"},
		"both, with the scheduler's choice": {"selected-node", own + racks + "]}}}}", "node-1", nil, "rack=1,metadata.name=node-1 | rack=2,metadata.name=node-1"},
		"both, with the volume's nodes":     {"selected-node", own + racks + "]}}}}", "", onNodes("a", "b"), "rack=1,host=a | rack=1,host=b | rack=2,host=a | rack=2,host=b"},
		"a term without requirements holds nowhere": {
			"selected-node", own + "{}, {matchExpressions: [{key: rack, operator: In, values: [\"1\"]}]}]}}}}", "node-1", nil, " | rack=1,metadata.name=node-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := fixture.Config(t, "Delete", map[string]string{"run-on": test.runOn, "pod-template": test.template})
			p := fixture.Provision(cfg, fixture.Claim(fixture.Annotated("volume.kubernetes.io/selected-node", test.node)))
			p.PV.Spec.NodeAffinity = test.affinity
			if got := terms(fixture.Build(t, p).Spec.Template.Spec); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// No other node can do the work of a run that must go to one. Of Kubernetes' own taints it tolerates
// those under which a kubelet starts it.
func TestARunToleratesTheTaintsOfItsNode(t *testing.T) {
	taints := []corev1.Taint{
		{Key: "storage", Value: "only", Effect: corev1.TaintEffectNoSchedule},
		{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule},
		{Key: "busy", Effect: corev1.TaintEffectPreferNoSchedule},
		{Key: "maintenance", Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
	}
	const ofTemplate = "spec: {tolerations: [{key: mine, operator: Exists}]}"
	for name, tt := range map[string]struct{ runOn, template, node, want string }{
		"the scheduler's choice": {"selected-node", "", "node-1", "node.kubernetes.io/unschedulable node.kubernetes.io/memory-pressure storage=only node-role.kubernetes.io/control-plane"},
		"with a template's":      {"selected-node", ofTemplate, "node-1", "mine node.kubernetes.io/unschedulable node.kubernetes.io/memory-pressure storage=only node-role.kubernetes.io/control-plane"},
		"anywhere":               {"any", ofTemplate, "node-1", "mine"},
		"nobody selected a node": {"selected-node", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := fixture.Config(t, "Delete", map[string]string{"run-on": tt.runOn, "pod-template": tt.template})
			p := fixture.Provision(cfg, fixture.Claim(fixture.Annotated("volume.kubernetes.io/selected-node", tt.node)))
			p.Taints = taints
			var got []string
			for _, toleration := range fixture.Build(t, p).Spec.Template.Spec.Tolerations {
				got = append(got, strings.TrimSuffix(toleration.Key+"="+toleration.Value, "="))
				if toleration.Key != "mine" && toleration.Effect != corev1.TaintEffectNoSchedule {
					t.Errorf("it has %+v", toleration)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("it tolerates %v, want %s", got, tt.want)
			}
		})
	}
}

// An image is made for one operating system, and a node of another cannot start it.
func TestARunGoesToNodesOfItsOperatingSystem(t *testing.T) {
	for name, tt := range map[string]struct{ selector, template, want string }{
		"by itself":      {"", "", "linux"},
		"beside others":  {"disk=ssd", "", "linux"},
		"the config's":   {"kubernetes.io/os=windows", "", "windows"},
		"the template's": {"", "spec: {nodeSelector: {kubernetes.io/os: windows}}", "windows"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := fixture.Config(t, "Delete", map[string]string{"node-selector": tt.selector, "pod-template": tt.template})
			got := fixture.Build(t, fixture.Provision(cfg, fixture.Claim())).Spec.Template.Spec.NodeSelector
			if got[corev1.LabelOSStable] != tt.want || tt.selector == "disk=ssd" && got["disk"] != "ssd" {
				t.Errorf("its node selector is %v", got)
			}
		})
	}
}

func TestPreferencesOfTheTemplateAreKept(t *testing.T) {
	cfg := fixture.Config(t, "Delete", map[string]string{"run-on": "selected-node", "pod-template": `
spec:
  affinity:
    podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: host}}]}
    nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}
`})
	a := fixture.Build(t, fixture.Provision(cfg, fixture.Claim(fixture.Annotated("volume.kubernetes.io/selected-node", "node-1")))).Spec.Template.Spec.Affinity
	if len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 || a.PodAntiAffinity == nil {
		t.Errorf("got %+v", a)
	}
}

// The PV is in a shared cache, so what a Job requires must not be written into it.
func TestBuildDoesNotChangeTheAffinityOfThePV(t *testing.T) {
	cfg := fixture.Config(t, "Delete", map[string]string{"run-on": "selected-node", "pod-template": own + racks + "]}}}}"})
	pv := fixture.PV(t)
	before := pv.DeepCopy()
	fixture.Build(t, jobs.Plan{Config: cfg, Verb: contract.Delete, Request: jobs.RequestOf(pv, cfg), PV: pv, Number: 1, Attempt: 1})
	if diff := cmp.Diff(before, pv); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestRunGoesToAnyNodeWhenItsNodeNoLongerExists(t *testing.T) {
	cfg := fixture.Config(t, "Delete", map[string]string{"run-on": "selected-node"})
	pv := fixture.PV(t)
	p := jobs.Plan{Config: cfg, Verb: contract.Delete, Request: jobs.RequestOf(pv, cfg), PV: pv, Number: 1, Attempt: 1}
	if got := terms(fixture.Build(t, p).Spec.Template.Spec); got == "" {
		t.Error("it goes anywhere although its node is there")
	}
	p.AnyNode = true
	if got := terms(fixture.Build(t, p).Spec.Template.Spec); got != "" {
		t.Errorf("it goes to %s", got)
	}
}
