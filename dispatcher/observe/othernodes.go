package observe

import (
	"slices"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// observeOtherNodes names the nodes that the scheduler may select for a pending claim instead of
// the one that it has selected. Only a claim for which a node had no room needs them, so the nodes
// are not listed for every claim. They come from the cache: a node that is missing there is tried a
// little later.
func (b *Observer) observeOtherNodes(o *Observation) {
	t := &o.View.Provision
	full := func(r decide.Run) bool { return o.View.Now.Before(decide.FullUntil(r)) }
	if t.Problem != nil || !t.NodeSelected || !slices.ContainsFunc(o.View.Runs, full) {
		return
	}
	for _, node := range b.Caches.AlternativesTo(t.Node) {
		if o.Provision.Allows(node) {
			t.OtherNodes = append(t.OtherNodes, node.Name)
		}
	}
}
