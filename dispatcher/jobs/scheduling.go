package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

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
	b, err := json.Marshal(need)
	if err != nil {
		panic(err) // strings and lists of strings: cannot fail
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
