package observe

import (
	"context"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// observeMissingNode notes if a volume that was made, or may have been, is on a node that no longer
// exists, or on one whose hostname another node has.
func (b *Observer) observeMissingNode(ctx context.Context, reader cluster.Reader, o *Observation) (err error) {
	t := &o.Delete.Target
	if t.Problem != nil || o.Delete.Config.RunOn != config.RunOnSelected {
		return nil
	}
	if o.View.Volume.Proven() {
		err = observeVolumeNodes(ctx, reader, o)
	} else {
		t.MissingNode, err = missingRunNode(ctx, reader, o.View)
	}
	t.NodeGonePolicy = b.nodeGonePolicy(o.Delete.Config)
	return err
}

// observeVolumeNodes names the nodes from which a volume was reachable, if none of them exists any
// more. A kubelet may give its own node any hostname, and would have the runs for another node's
// volumes: where two nodes have it, nothing runs. It reads the nodes only if a run would have to go
// there.
func observeVolumeNodes(ctx context.Context, reader cluster.Reader, o *Observation) error {
	if pvs.NodesOf(o.PV) == nil || !needsItsNodes(o) {
		return nil
	}
	t := &o.Delete.Target
	all, err := reader.Nodes(ctx)
	if err != nil {
		return err
	}
	nodes := pvs.Reachable(o.PV, all)
	if host, sharing := pvs.SharedHostname(o.PV, nodes); host != "" {
		t.Problem = &decide.Problem{Reason: reason.VolumeInDoubt, Note: reason.SharedHostname(o.PV.Name, host, sharing)}
		return nil
	}
	switch node := pvs.NodeOf(o.PV); {
	case len(nodes) > 0:
	case node != "":
		t.MissingNode = "the volume's node " + quote.Name(node)
	default:
		t.MissingNode = "every node in the volume's node affinity"
	}
	return nil
}

// needsItsNodes reports whether a volume may have to be deleted or grown.
func needsItsNodes(o *Observation) bool {
	vol := o.View.Volume
	grows, deletedUnbound := o.Claim != nil && pvs.WantsMore(o.Claim), vol.IsUnbound() && (vol.Terminating || vol.State == decide.Mismatched)
	return pvs.IsReleased(o.PV) || grows || deletedUnbound
}

// missingRunNode names the node where a provision without a PV may have made a volume, if that node
// no longer exists.
func missingRunNode(ctx context.Context, reader cluster.Reader, v decide.View) (string, error) {
	last := v.MayHaveMade()
	if last == nil || !last.Held || last.Node == "" {
		return "", nil
	}
	node, err := reader.Node(ctx, last.Node)
	if node != nil || err != nil {
		return "", err
	}
	return "the node " + quote.Name(last.Node) + " of the Job " + last.Name, nil
}

// nodeGonePolicy returns what the present config says, if it still exists. Whether the volumes of a
// lost node are to be given up is known when the node is lost, not when the volumes are made.
func (b *Observer) nodeGonePolicy(made config.Config) config.NodeGone {
	class := b.Caches.Classes.Named(made.Source.Class)
	if class == nil {
		return made.NodeGone
	}
	present := b.AtPresent(class)
	same := present.Config.Source.Namespace == made.Source.Namespace && present.Config.Source.Name == made.Source.Name
	if present.Target.Problem != nil || !same {
		return made.NodeGone
	}
	return present.Config.NodeGone
}

// MissingNode names the missing node instead of which a run of this verb was launched to any.
func (o *Observation) MissingNode(verb contract.Verb) string {
	if verb == contract.Expand {
		return o.View.Expand.MissingNode
	}
	return o.View.Delete.MissingNode
}
