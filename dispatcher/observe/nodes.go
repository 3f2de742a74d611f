package observe

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// NodeTopology is where a node is: its name, and those of its labels that say its place.
type NodeTopology struct {
	Name   string
	Labels map[string]string
}

// topologyLabels are the labels that say where a node is.
var topologyLabels = []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelHostname}

// topologyOf returns where a node is, by its name or its hostname label, which a PV mostly uses. A node without the
// labels, or one that does not exist, has no topology. That is no reason to hold up a run.
func (b *Observer) topologyOf(name string) NodeTopology {
	out := NodeTopology{Name: name}
	for _, node := range b.Caches.NodesNamed(name) {
		if out.Labels != nil && node.Name != name {
			continue
		}
		out = topologyOfNode(node)
	}
	return out
}

// topologyOfNode returns where a node is, by its labels.
func topologyOfNode(node *corev1.Node) NodeTopology {
	out := NodeTopology{Name: node.Name, Labels: map[string]string{}}
	for _, label := range topologyLabels {
		if value := node.Labels[label]; value != "" {
			out.Labels[label] = value
		}
	}
	return out
}

// observeSelectedNode notes if the node that the scheduler has selected for a claim no longer exists, and where it is. The cache may not have a
// node yet that was added a moment ago, and a claim must not be provisioned in the default zone for that.
func (r *Resolved) observeSelectedNode(ctx context.Context, reader cluster.Reader) error {
	t := &r.Target
	if !t.NodeSelected || t.Node == "" {
		return nil
	}
	node, err := reader.Node(ctx, t.Node)
	if err != nil {
		return err
	}
	if node == nil {
		t.MissingNode = "the selected node " + t.Node
		return nil
	}
	r.Node = topologyOfNode(node)
	return nil
}

// observeMissingNode notes if a volume that was made, or may have been, is on a node that no longer exists.
func (b *Observer) observeMissingNode(ctx context.Context, reader cluster.Reader, o *Observation) (err error) {
	t := &o.Delete.Target
	if t.Problem != nil || o.Delete.Config.RunOn != config.RunOnSelected {
		return nil
	}
	if o.View.Volume.Proven() {
		t.MissingNode, err = missingVolumeNodes(ctx, reader, o)
	} else {
		t.MissingNode, err = missingRunNode(ctx, reader, o.View)
	}
	t.NodeGonePolicy = b.nodeGonePolicy(o.Delete.Config)
	return err
}

// missingVolumeNodes names the nodes from which a volume was reachable, if none of them exists any more. It reads
// them only if a run would have to go there.
func missingVolumeNodes(ctx context.Context, reader cluster.Reader, o *Observation) (string, error) {
	vol, grows := o.View.Volume, o.Claim != nil && WantsMore(o.Claim)
	deletedUnbound := vol.Terminating && vol.Unbound
	if pvs.NodesOf(o.PV) == nil || !vol.Released && !grows && !deletedUnbound {
		return "", nil
	}
	nodes, err := reader.Nodes(ctx)
	switch node := pvs.NodeOf(o.PV); {
	case err != nil || pvs.ReachableFrom(o.PV, nodes):
		return "", err
	case node != "":
		return "the volume's node " + node, nil
	default:
		return "every node that the volume's node affinity allows", nil
	}
}

// missingRunNode names the node where a provision without a PV may have made a volume, if that node no longer exists.
func missingRunNode(ctx context.Context, reader cluster.Reader, v decide.View) (string, error) {
	last := v.MayHaveMade()
	if last == nil || !last.Held || last.Node == "" {
		return "", nil
	}
	node, err := reader.Node(ctx, last.Node)
	if node != nil || err != nil {
		return "", err
	}
	return "the node " + last.Node + " of the Job " + last.Name, nil
}

// nodeGonePolicy returns what the config says today, if it still exists. Whether the volumes of a lost node are to be
// given up is known when the node is lost, not when the volumes are made.
func (b *Observer) nodeGonePolicy(made config.Config) config.NodeGone {
	today := Resolved{Class: b.Caches.Class(made.Source.Class)}
	if today.Class == nil {
		return made.NodeGone
	}
	b.resolveConfig(&today)
	same := today.Config.Source.Namespace == made.Source.Namespace && today.Config.Source.Name == made.Source.Name
	if today.Target.Problem != nil || !same {
		return made.NodeGone
	}
	return today.Config.NodeGone
}
