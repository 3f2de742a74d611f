package controller

import (
	"context"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// Nodes are watched, since nothing else tells a claim or a volume that its node has gone or is back. Of each only
// the name and the labels are kept, and only a change of these wakes anybody: kubelets write on their nodes all
// the time.

// onlyLabels drops what the dispatcher does not ask of a node.
func onlyLabels(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
	}}, nil
}

func (c *Controller) nodeHandler() cache.ResourceEventHandler {
	return handlers(c.nodeChanged, func(old, now any) {
		if !maps.Equal(old.(*corev1.Node).Labels, now.(*corev1.Node).Labels) {
			c.nodeChanged(old)
			c.nodeChanged(now)
		}
	})
}

// nodeChanged wakes whatever may wait for the node, or wait no more. Volumes that name no single node are woken by
// every node.
func (c *Controller) nodeChanged(obj any) {
	names, _ := namesOfNode(obj)
	for _, name := range append(names, "") {
		for _, claim := range waiting(c.caches.claims, name) {
			c.queue.Add(claim.(*corev1.PersistentVolumeClaim).UID)
		}
		for _, pv := range waiting(c.caches.volumes, name) {
			c.wakeVolume(pv.(*corev1.PersistentVolume).Name)
		}
		for _, s := range c.caches.spaces {
			for _, job := range waiting(s.jobs, name) {
				c.wakeJob(job.(*batchv1.Job))
			}
		}
	}
}

// waiting are the objects of a cache that wait for a node; of the nodes, those with that name.
func waiting(indexer cache.Indexer, node string) []any {
	found, err := indexer.ByIndex(byNode, node)
	if err != nil {
		return nil // only when the index does not exist
	}
	return found
}

func namesOfNode(obj any) ([]string, error) {
	node := obj.(*corev1.Node)
	names := []string{node.Name}
	if host := node.Labels[corev1.LabelHostname]; host != "" && host != node.Name {
		names = append(names, host)
	}
	return names, nil
}

func nodeOfClaim(obj any) ([]string, error) {
	claim := obj.(*corev1.PersistentVolumeClaim)
	if node := claim.Annotations[storagehelpers.AnnSelectedNode]; node != "" && claim.Spec.VolumeName == "" {
		return []string{node}, nil
	}
	return nil, nil
}

// nodeOfVolume: one that names no single node may wait for any, when it has been released.
func nodeOfVolume(obj any) ([]string, error) {
	pv := obj.(*corev1.PersistentVolume)
	node := pvs.NodeOf(pv)
	if pv.Annotations[contract.AnnClaimUID] == "" || pvs.NodesOf(pv) == nil || node == "" && !released(pv) {
		return nil, nil
	}
	return []string{node}, nil
}

func nodeOfJob(obj any) ([]string, error) {
	job := obj.(*batchv1.Job)
	if !slices.Contains(job.Finalizers, jobs.FinalizerRecord) {
		return nil, nil
	}
	var nodes []string
	for _, uid := range jobs.UIDs(job) {
		if node := job.Annotations[jobs.Key(job, uid, jobs.AnnNode)]; node != "" && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	return nodes, nil
}

// seeChosen finds out whether the node that the scheduler has chosen for a claim has gone.
func (c *Controller) seeChosen(ctx context.Context, look looker, t *decide.Target) error {
	if !t.NodeSelected || t.Node == "" {
		return nil
	}
	node, err := look.node(ctx, t.Node)
	if node == nil {
		t.MissingNode = "the selected node " + t.Node
	}
	return err
}

// seeGone finds out whether what was made, or may have been, lies on a node that has gone.
func (c *Controller) seeGone(ctx context.Context, look looker, o *observation) (err error) {
	t := &o.clean.target
	if t.Problem != nil || o.clean.cfg.RunOn != config.RunOnSelected {
		return nil
	}
	if o.view.Volume.Proven() {
		t.MissingNode, err = goneFrom(ctx, look, o)
	} else {
		t.MissingNode, err = goneBefore(ctx, look, o.view)
	}
	t.NodeGonePolicy = c.ifGone(o.clean.cfg)
	return err
}

// goneFrom tells from where a volume could be reached, if no such node is left. It is of interest only where a run
// would have to go there.
func goneFrom(ctx context.Context, look looker, o *observation) (string, error) {
	vol, grows := o.view.Volume, o.claim != nil && growing(o.claim)
	withdrawn := vol.Terminating && vol.Unbound
	if pvs.NodesOf(o.pv) == nil || !vol.Released && !grows && !withdrawn {
		return "", nil
	}
	nodes, err := look.nodes(ctx)
	switch node := pvs.NodeOf(o.pv); {
	case err != nil || pvs.ReachableFrom(o.pv, nodes):
		return "", err
	case node != "":
		return "the volume's node " + node, nil
	default:
		return "every node that the volume's node affinity allows", nil
	}
}

// goneBefore names the node where a volume may have been made, of which there is no PV, if it has gone.
func goneBefore(ctx context.Context, look looker, v decide.View) (string, error) {
	last := v.Newest(contract.Provision)
	if last == nil || !last.Held || last.Node == "" {
		return "", nil
	}
	node, err := look.node(ctx, last.Node)
	if node != nil || err != nil {
		return "", err
	}
	return "the node " + last.Node + " of the Job " + last.Name, nil
}

// ifGone is what the config says today, where it is still there: whether a lost node's volumes are to be given up is
// known when it is lost, not when they are made.
func (c *Controller) ifGone(made config.Config) config.NodeGone {
	today := resolved{class: c.class(made.Source.Class)}
	if today.class == nil {
		return made.NodeGone
	}
	c.resolveConfig(&today)
	same := today.cfg.Source.Namespace == made.Source.Namespace && today.cfg.Source.Name == made.Source.Name
	if today.target.Problem != nil || !same {
		return made.NodeGone
	}
	return today.cfg.NodeGone
}

// placed fills in where a volume's node is, under its own name: a PV names it by its hostname label, mostly.
func (c *Controller) placed(ctx context.Context, r *contract.Request) error {
	for _, obj := range waiting(c.caches.nodesByName, r.SelectedNode) {
		r.SelectedNode = obj.(*corev1.Node).Name
	}
	topology, err := c.topology(ctx, r.SelectedNode)
	r.SelectedTopology, r.SelectedZone = topology, topology[corev1.LabelTopologyZone]
	return err
}
