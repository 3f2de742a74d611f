package jobs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// nodesFor is where a run must go with run-on: selected-node: to the volume's nodes once there is a
// volume, before that to the scheduler's choice. Nil: anywhere.
func nodesFor(p Plan) *corev1.NodeSelector {
	if p.Config.RunOn != config.RunOnSelected || p.Anywhere {
		return nil
	}
	if need := NodesOf(p.PV); need != nil {
		return need
	}
	if p.Request.SelectedNode == "" {
		return nil
	}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{p.Request.SelectedNode}},
		},
	}}}
}

// NodesOf are the nodes from which a PV's volume can be reached; nil: it does not say.
func NodesOf(pv *corev1.PersistentVolume) *corev1.NodeSelector {
	if a := pv.Spec.NodeAffinity; a != nil {
		return a.Required
	}
	return nil
}

// NodeOf is the one node from which a PV's volume can be reached, by its name or its hostname label, whichever
// the PV tells; empty: there is none, or more than one.
func NodeOf(pv *corev1.PersistentVolume) string {
	need := NodesOf(pv)
	if need == nil || len(need.NodeSelectorTerms) != 1 {
		return ""
	}
	term := need.NodeSelectorTerms[0]
	for _, r := range slices.Concat(term.MatchFields, term.MatchExpressions) {
		if (r.Key == "metadata.name" || r.Key == corev1.LabelHostname) && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
			return r.Values[0]
		}
	}
	return ""
}

// Reaches tells whether any of these nodes is one from which a PV's volume can be reached.
func Reaches(pv *corev1.PersistentVolume, nodes []*corev1.Node) bool {
	need := NodesOf(pv)
	if need == nil {
		return true
	}
	selector := nodeaffinity.NewLazyErrorNodeSelector(need)
	return slices.ContainsFunc(nodes, func(n *corev1.Node) bool {
		fits, err := selector.Match(n)
		return fits && err == nil
	})
}

// requireNodes adds a requirement to whatever the pod requires already. Terms are alternatives, so
// both hold only in every pair of them.
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
			terms = append(terms, both(a, b))
		}
	}
	*at = &corev1.NodeSelector{NodeSelectorTerms: terms}
}

// both holds where a and b hold. A term without requirements holds nowhere, so neither does the pair.
func both(a, b corev1.NodeSelectorTerm) corev1.NodeSelectorTerm {
	if empty(a) || empty(b) {
		return corev1.NodeSelectorTerm{}
	}
	return corev1.NodeSelectorTerm{
		MatchExpressions: slices.Concat(a.MatchExpressions, b.MatchExpressions),
		MatchFields:      slices.Concat(a.MatchFields, b.MatchFields),
	}
}

func empty(t corev1.NodeSelectorTerm) bool { return len(t.MatchExpressions)+len(t.MatchFields) == 0 }
