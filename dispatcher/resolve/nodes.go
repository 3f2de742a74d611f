package resolve

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// NodeTopology is where a node is: its name, and those of its labels that say its place. Taints are
// what keeps pods away from it.
type NodeTopology struct {
	Name   string
	Labels map[string]string
	Taints []corev1.Taint
}

// topologyLabels are the labels that say where a node is.
var topologyLabels = []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelHostname}

// TopologyOf returns where a node is, by its name or its hostname label, which a PV mostly uses. A
// node without the labels, or one that does not exist, has no topology. That is no reason to hold
// up a run.
func (f *Resolver) TopologyOf(name string) NodeTopology {
	out := NodeTopology{Name: name}
	for _, node := range f.Caches.Nodes.By(cluster.ByNode, name) {
		if out.Labels != nil && node.Name != name {
			continue
		}
		out = TopologyOfNode(node)
	}
	return out
}

// TopologyOfNode returns where a node is, by its labels.
func TopologyOfNode(node *corev1.Node) NodeTopology {
	out := NodeTopology{Name: node.Name, Labels: map[string]string{}, Taints: node.Spec.Taints}
	for _, label := range topologyLabels {
		if value := node.Labels[label]; value != "" {
			out.Labels[label] = value
		}
	}
	return out
}

// SetOn fills in where a request's run is.
func (n NodeTopology) SetOn(r *contract.Request) {
	r.SelectedNode, r.SelectedTopology, r.SelectedZone = n.Name, n.Labels, n.Labels[corev1.LabelTopologyZone]
}

// selectedNode returns the node that the scheduler has selected for a claim. Where none selects
// nodes, whoever may write the claim chooses the annotation's text, and it says nothing.
func selectedNode(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) string {
	if !WaitsForNode(class) {
		return ""
	}
	return claim.Annotations[storagehelpers.AnnSelectedNode]
}

// observeSelectedNode notes if the node that the scheduler has selected for a claim no longer
// exists, is excluded or is cordoned, and where it is. The cache may not have a node yet that was added a moment
// ago, and a claim must not be provisioned in the default zone for that.
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
		t.MissingNode = "the selected node " + quote.Name(t.Node)
		return nil
	}
	r.Node = TopologyOfNode(node)
	t.ExcludedNode, t.Cordoned = r.whyExcluded(node), node.Spec.Unschedulable
	return nil
}

// Allows reports whether class and config allow a volume on a node.
func (r *Resolved) Allows(node *corev1.Node) bool { return r.whyExcluded(node) == "" }

// TakesRuns reports whether a node takes the config's pod, also if the class allows no volume there.
func (r *Resolved) TakesRuns(node *corev1.Node) bool { return r.whyNoRun(node) == "" }

// whyExcluded returns why class and config allow no volume on a node, or nothing. Which nodes take
// the config's pod is about the node of the run, which is the volume's only with run-on:
// selected-node.
func (r *Resolved) whyExcluded(node *corev1.Node) string {
	terms := r.Class.AllowedTopologies
	if len(terms) > 0 && !slices.ContainsFunc(terms, func(term corev1.TopologySelectorTerm) bool { return isIn(node, term) }) {
		return reason.OutsideOfTopologies(node.Name, r.Class.Name)
	}
	if !r.Target.OnSelectedNode {
		return ""
	}
	if node.Labels[corev1.LabelHostname] == "" {
		return reason.NoHostname(node.Name, r.Class.Name)
	}
	return r.whyNoRun(node)
}

// whyNoRun returns why a node takes no pod of the config, or nothing.
func (r *Resolved) whyNoRun(node *corev1.Node) string {
	pod := r.Config.Scheduling
	fits, err := nodeaffinity.NewRequiredNodeAffinity(pod.NodeSelector, pod.Affinity).Match(node)
	if err == nil && !fits || isOfAnotherOS(node, pod.NodeSelector) {
		return reason.NotSelected(node.Name, r.Class.Name)
	}
	if taint := r.repelledBy(node); taint != nil {
		return reason.Repelled(node.Name, taint.ToString(), r.Class.Name)
	}
	return ""
}

// isOfAnotherOS reports whether a node's operating system is not that of the config's pod.
func isOfAnotherOS(node *corev1.Node, selector map[string]string) bool {
	system := node.Labels[corev1.LabelOSStable]
	return system != "" && system != cmp.Or(selector[corev1.LabelOSStable], config.DefaultOS)
}

// repelledBy returns a taint of a node that ends the config's pod there, or nil. Those of the effect
// NoSchedule do not count: the pod tolerates them, or Kubernetes says by them how a node is at the
// moment, and it is waited for.
func (r *Resolved) repelledBy(node *corev1.Node) *corev1.Taint {
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		passes := taint.Effect != corev1.TaintEffectNoExecute || strings.HasPrefix(taint.Key, "node.kubernetes.io/")
		if !passes && !scheduling.TolerationsTolerateTaint(klog.Background(), r.Config.Scheduling.Tolerations, taint, true) {
			return taint
		}
	}
	return nil
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

// WaitsForNode reports whether the scheduler selects a node for the claims of a class.
func WaitsForNode(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}
