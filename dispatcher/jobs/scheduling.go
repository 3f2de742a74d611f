package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// nodesFor returns where a run must go with run-on: selected-node. If the volume exists, it goes to
// the volume's nodes; before that, to the node that the scheduler selected. Nil means any node.
func nodesFor(p Plan) *corev1.NodeSelector {
	if p.Config.RunOn != config.RunOnSelected || p.AnyNode {
		return nil
	}
	if p.PV != nil {
		if need := pvs.NodesOf(p.PV); need != nil {
			return pinned(need, pvs.NodeOf(p.PV) != "", p.Request.SelectedNode)
		}
	}
	if p.Request.SelectedNode == "" {
		return nil
	}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{nodeNamed(p.Request.SelectedNode)}}
}

// pinned returns the nodes of a volume, where that is one node, by its name as well. While the run
// waits for it, the kubelet of another node may label its own with the hostname, and a node's name
// never changes.
func pinned(need *corev1.NodeSelector, isOne bool, node string) *corev1.NodeSelector {
	if !isOne || node == "" {
		return need
	}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{bothTerms(need.NodeSelectorTerms[0], nodeNamed(node))}}
}

// nodeNamed returns a term that holds for one node.
func nodeNamed(name string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
	}}
}

// Nodes returns a hash of the nodes that a plan's run must go to, empty if it may go to any. Two
// runs of one config revision and with the same nodes start, or do not start, for the same reasons.
func Nodes(p Plan) string {
	need := nodesFor(p)
	if need == nil {
		return ""
	}
	return hashOf(need)
}

// Scheduling returns a hash of where the pods of a config go, and what they need there.
func Scheduling(cfg config.Config) string { return hashOf(cfg.Scheduling) }

func hashOf(part any) string {
	b, err := json.Marshal(part)
	if err != nil {
		panic(err) // of types of the API: cannot fail
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// requireNodes adds a requirement to those that the pod has already. Terms are alternatives, so
// both requirements hold only in every pair of terms.
func requireNodes(spec *corev1.PodSpec, need *corev1.NodeSelector) {
	if need == nil {
		return
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	at := &spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if *at == nil {
		*at = need
		return
	}
	var terms []corev1.NodeSelectorTerm
	for _, a := range (*at).NodeSelectorTerms {
		for _, b := range need.NodeSelectorTerms {
			terms = append(terms, bothTerms(a, b))
		}
	}
	*at = &corev1.NodeSelector{NodeSelectorTerms: terms}
}

// schedule sets where a pod goes and what it needs there. It is not merged with the rest of the
// template, which may be that of an older revision with the needs of the present one. The pull
// secrets are added to those of the template, since the image of an older revision may be where
// only its own lead. The container keeps its claims on the pod's devices, which only its own
// template has. The pod goes to nodes of the operating system of the images unless the config says
// otherwise. It requests no CPU and no memory: a pod that fills its node waits for its volume, and
// would wait for a pod that finds no room there. Zero is said, and not left out, for the default of
// a LimitRange would take its place, and a ResourceQuota refuses a pod that says nothing.
func schedule(spec *corev1.PodSpec, scheduling corev1.PodSpec, parallel int) {
	s := scheduling.DeepCopy()
	spec.NodeSelector = map[string]string{corev1.LabelOSStable: config.DefaultOS}
	maps.Copy(spec.NodeSelector, s.NodeSelector)
	spec.Affinity, spec.Tolerations, spec.TopologySpreadConstraints = s.Affinity, s.Tolerations, s.TopologySpreadConstraints
	spec.SchedulerName, spec.PriorityClassName, spec.Resources = s.SchedulerName, s.PriorityClassName, s.Resources
	for _, secret := range s.ImagePullSecrets {
		if !slices.Contains(spec.ImagePullSecrets, secret) {
			spec.ImagePullSecrets = append(spec.ImagePullSecrets, secret)
		}
	}
	r := named(s.Containers, isProvisioner).Resources
	if _, set := r.Requests[corev1.ResourceCPU]; !set {
		r.Requests = withQuantity(r.Requests, corev1.ResourceCPU, resource.Quantity{})
	}
	own := &spec.Containers[slices.IndexFunc(spec.Containers, isProvisioner)].Resources
	r.Claims = own.Claims
	*own = r
	defaultMemory(spec, parallel)
}

// tolerations returns what a run tolerates that must go to one node: no other node can do its work.
// Those are the taints by which an administrator keeps other pods away, and of Kubernetes' own that
// of a cordoned node and of one that is short of memory. A kubelet under pressure of disk or PIDs
// rejects the pod (pkg/kubelet/eviction, Admit), so that is waited out. A node that is not Ready
// would start nothing, and a pod without a node can be cancelled. It is evicted from such a node as
// any pod is, for then an event names the node.
func tolerations(p Plan) []corev1.Toleration {
	if nodesFor(p) == nil || p.Request.SelectedNode == "" {
		return nil
	}
	out := []corev1.Toleration{tolerationOf(corev1.TaintNodeUnschedulable, ""), tolerationOf(corev1.TaintNodeMemoryPressure, "")}
	for _, taint := range p.Taints {
		if taint.Effect == corev1.TaintEffectNoSchedule && !strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			out = append(out, tolerationOf(taint.Key, taint.Value))
		}
	}
	return out
}

// tolerationOf returns what tolerates a taint of the effect NoSchedule, of any value if that is
// empty.
func tolerationOf(key, value string) corev1.Toleration {
	t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	if value != "" {
		t.Operator, t.Value = corev1.TolerationOpEqual, value
	}
	return t
}

// tolerate adds tolerations to those that a template has set.
func tolerate(spec *corev1.PodSpec, more []corev1.Toleration) {
	for _, t := range more {
		if !slices.Contains(spec.Tolerations, t) {
			spec.Tolerations = append(spec.Tolerations, t)
		}
	}
}

// bothTerms returns a term that holds where a and b hold. A term without requirements holds
// nowhere, so neither does the pair.
func bothTerms(a, b corev1.NodeSelectorTerm) corev1.NodeSelectorTerm {
	if isEmptyTerm(a) || isEmptyTerm(b) {
		return corev1.NodeSelectorTerm{}
	}
	return corev1.NodeSelectorTerm{
		MatchExpressions: slices.Concat(a.MatchExpressions, b.MatchExpressions),
		MatchFields:      slices.Concat(a.MatchFields, b.MatchFields),
	}
}

// isEmptyTerm reports whether a term has no requirements.
func isEmptyTerm(t corev1.NodeSelectorTerm) bool {
	return len(t.MatchExpressions)+len(t.MatchFields) == 0
}
