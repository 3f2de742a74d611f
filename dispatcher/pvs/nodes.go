package pvs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// NodesOf returns the nodes from which a PV's volume is reachable, nil if the PV does not say.
func NodesOf(pv *corev1.PersistentVolume) *corev1.NodeSelector {
	if a := pv.Spec.NodeAffinity; a != nil {
		return a.Required
	}
	return nil
}

// NodeOf returns the one node from which a PV's volume is reachable, by its name or its hostname label, whichever the
// PV has. It returns nothing if there is none, or more than one.
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

// ReachableFrom reports whether a PV's volume is reachable from any of these nodes.
func ReachableFrom(pv *corev1.PersistentVolume, nodes []*corev1.Node) bool {
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
