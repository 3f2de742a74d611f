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

// NodeOf returns the one node from which a PV's volume is reachable, by its name or its hostname
// label, whichever the PV has. It returns nothing if there is none, or more than one.
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

// Reachable returns those of these nodes from which a PV's volume is reachable.
func Reachable(pv *corev1.PersistentVolume, nodes []*corev1.Node) []*corev1.Node {
	need := NodesOf(pv)
	if need == nil {
		return nodes
	}
	selector := nodeaffinity.NewLazyErrorNodeSelector(need)
	var out []*corev1.Node
	for _, n := range nodes {
		if fits, err := selector.Match(n); fits && err == nil {
			out = append(out, n)
		}
	}
	return out
}

// SharedHostname returns a hostname by which a PV names the node of its volume, and the names of
// the nodes that all have it, of those from which the volume is reachable. It returns nothing if
// each hostname is that of one node.
func SharedHostname(pv *corev1.PersistentVolume, reachable []*corev1.Node) (hostname string, nodes []string) {
	having := map[string][]string{}
	for _, n := range reachable {
		host := n.Labels[corev1.LabelHostname]
		having[host] = append(having[host], n.Name)
	}
	for _, host := range hostnames(NodesOf(pv)) {
		if len(having[host]) > 1 {
			return host, having[host]
		}
	}
	return "", nil
}

// hostnames returns the hostnames that a selector, which may be nil, names.
func hostnames(need *corev1.NodeSelector) (out []string) {
	if need == nil {
		return nil
	}
	for _, term := range need.NodeSelectorTerms {
		for _, r := range term.MatchExpressions {
			if r.Key == corev1.LabelHostname && r.Operator == corev1.NodeSelectorOpIn {
				out = append(out, r.Values...)
			}
		}
	}
	return out
}
