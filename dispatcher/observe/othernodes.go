package observe

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// observeOtherNodes names the nodes that the scheduler may select for a pending claim instead of the one that it has
// selected. Only a claim for which a node had no room needs them, so the nodes are not listed for every claim. They
// come from the cache: a node that is missing there is tried a little later.
func (b *Observer) observeOtherNodes(o *Observation) {
	t := &o.View.Provision
	full := func(r decide.Run) bool { return o.View.Now.Before(decide.FullUntil(r)) }
	if t.Problem != nil || !t.NodeSelected || !slices.ContainsFunc(o.View.Runs, full) {
		return
	}
	for _, node := range b.Caches.AlternativesTo(t.Node) {
		if o.Provision.allows(node) {
			t.OtherNodes = append(t.OtherNodes, node.Name)
		}
	}
	b.observePublished(o)
}

// allows reports whether class and config allow a volume on a node. The config's node-selector is about the node of
// the run, which is the volume's only with run-on: selected-node.
func (r *Resolved) allows(node *corev1.Node) bool {
	if r.Target.OnSelectedNode && !labels.SelectorFromSet(r.Config.NodeSelector).Matches(labels.Set(node.Labels)) {
		return false
	}
	terms := r.Class.AllowedTopologies
	return len(terms) == 0 || slices.ContainsFunc(terms, func(term corev1.TopologySelectorTerm) bool { return isIn(node, term) })
}

// isIn reports whether a node is in a topology.
func isIn(node *corev1.Node, term corev1.TopologySelectorTerm) bool {
	for _, label := range term.MatchLabelExpressions {
		if !slices.Contains(label.Values, node.Labels[label.Key]) {
			return false
		}
	}
	return true
}
