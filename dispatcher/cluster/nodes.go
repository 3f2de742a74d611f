package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// isReady reports whether a node is Ready and not cordoned.
func isReady(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// AlternativesTo returns the other nodes that a pod may go to that the scheduler has placed on a
// node. They are Ready, and repel no pod that this node does not repel. The pod's own wishes are
// not known. They are sorted by name.
func (c *Caches) AlternativesTo(name string) []*corev1.Node {
	var tolerated []corev1.Taint
	if selected := c.Nodes.Named(name); selected != nil {
		tolerated = selected.Spec.Taints
	}
	var out []*corev1.Node
	for _, node := range c.Nodes.All() {
		if node.Name != name && isReady(node) && !repelsMore(node.Spec.Taints, tolerated) {
			out = append(out, node)
		}
	}
	return out
}

// repelsMore reports whether a taint keeps pods away, and is none of those that the pod is known to
// tolerate.
func repelsMore(taints, tolerated []corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool {
		known := slices.ContainsFunc(tolerated, func(k corev1.Taint) bool { return k.MatchTaint(&t) && k.Value == t.Value })
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !known
	})
}
