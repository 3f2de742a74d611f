package sim_test

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// nodes are those of the world.
var nodes = []string{"node-1", "node-2"}

// aheadMost is how far the clock of a node may be ahead or behind, and driftMost how far it is set
// while pods run.
const (
	aheadMost = 10 * time.Minute
	driftMost = 25 * time.Second
)

var nodeFaults = []act{
	{"a node is removed", func(w *world) string { return one(w, w.removeNode) }},
	{"a node freezes", func(w *world) string {
		return one(w, func(node *corev1.Node) {
			w.Frozen[node.Name] = true
			w.setReady(node, corev1.ConditionUnknown)
		})
	}},
	{"a node goes on", func(w *world) string {
		return ofFrozen(w, (*world).thaw)
	}},
	{"an administrator marks a node out of service", func(w *world) string {
		return ofFrozen(w, (*world).markOutOfService)
	}},
	{"the clock of a node is set", func(w *world) string {
		name := pickOne(w, nodes)
		w.Clocks[name] = w.clocks[name] + w.between(driftMost)
		return name
	}},
	{"a node is cordoned", func(w *world) string { w.Cordoned = "node-1"; return w.Cordoned }},
	{"a node is drained", func(w *world) string { return one(w, w.drain) }},
	{"no node is cordoned", func(w *world) string { w.uncordon(); return "any" }},
	{"images cannot be pulled", func(w *world) string { return w.setWaits("ErrImagePull") }},
	{"images can be pulled", func(w *world) string { return w.setWaits("") }},
	{"kubelets stop to end pods", func(w *world) string { w.NodeLost = true; return "all" }},
	{"kubelets go on", func(w *world) string { w.NodeLost = false; return "all" }},
}

// between returns a time between -most and most.
func (w *world) between(most time.Duration) time.Duration {
	return time.Duration(w.rand.Int64N(int64(2*most))) - most
}

func (w *world) setClocks() {
	w.clocks = map[string]time.Duration{}
	for _, name := range nodes {
		w.clocks[name] = w.between(aheadMost)
		w.Clocks[name] = w.clocks[name]
	}
}

// ofFrozen lets something be done with one of the nodes that are frozen.
func ofFrozen(w *world, do func(*world, *corev1.Node)) string {
	frozen := slices.DeleteFunc(fakecluster.List[*corev1.Node](w), func(node *corev1.Node) bool { return !w.Frozen[node.Name] })
	if len(frozen) == 0 {
		return ""
	}
	node := pickOne(w, frozen)
	do(w, node)
	return node.Name
}

// thaw lets a node go on. Its kubelet ends what it must end before it reports that it is there.
func (w *world) thaw(node *corev1.Node) {
	delete(w.Frozen, node.Name)
	w.move("kubelets")
	w.setReady(node, corev1.ConditionTrue)
}

func (w *world) setReady(node *corev1.Node, ready corev1.ConditionStatus) {
	fakecluster.Update(w, fakecluster.KubeControllerManager, node, func(node *corev1.Node) {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		if ready == corev1.ConditionTrue {
			node.Spec.Taints = nil
		}
	})
}

// markOutOfService marks a node whose machine is off. Its pods are evicted, and the garbage
// collector of pods ends them.
func (w *world) markOutOfService(node *corev1.Node) {
	w.PowerOff(node.Name)
	fakecluster.Update(w, fakecluster.Admin, node, func(node *corev1.Node) {
		node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}
	})
	w.collectPodsOf(node.Name)
}

// createMissingNodes creates the nodes that are missing.
func (w *world) createMissingNodes() string {
	created := ""
	for _, name := range nodes {
		if fakecluster.Get[*corev1.Node](w, "", name) == nil {
			w.CreateNode(name)
			created += " " + name
		}
	}
	w.setChoices()
	return created
}

// setChoices lets the scheduler select among the nodes that exist, as it sees them.
func (w *world) setChoices() {
	w.Choices = nil
	all := fakecluster.List[*corev1.Node](w)
	for len(w.Choices) < 1000 && len(all) > 0 {
		w.Choices = append(w.Choices, pickOne(w, all).Name)
	}
}

// removeNode deletes a node. The garbage collector of pods ends its pods, and knows nothing of
// their containers.
func (w *world) removeNode(node *corev1.Node) {
	if w.Frozen[node.Name] {
		w.PowerOff(node.Name) // a machine that runs is drained before
	}
	delete(w.Frozen, node.Name)
	fakecluster.Delete(w, fakecluster.Admin, node)
	w.collectPodsOf(node.Name)
	w.setChoices()
	if len(w.Choices) > 0 {
		w.Choices = slices.Insert(w.Choices, 0, node.Name) // the scheduler does not know it yet
	}
}

// drain cordons a node and evicts its pods. What tolerates the taint is placed there all the same.
func (w *world) drain(node *corev1.Node) {
	fakecluster.Update(w, fakecluster.Admin, node, func(node *corev1.Node) { node.Spec.Unschedulable = true })
	for _, pod := range fakecluster.List[*corev1.Pod](w) {
		if pod.Spec.NodeName == node.Name && pod.DeletionTimestamp == nil && !hasEnded(pod) {
			fakecluster.Update(w, fakecluster.Admin, pod, func(p *corev1.Pod) { disrupt(p, "EvictionByEvictionAPI") })
			fakecluster.Delete(w, fakecluster.Admin, pod)
		}
	}
}

// uncordon lets every node take pods again.
func (w *world) uncordon() {
	w.Cordoned = ""
	for _, node := range fakecluster.List[*corev1.Node](w) {
		if node.Spec.Unschedulable {
			fakecluster.Update(w, fakecluster.Admin, node, func(node *corev1.Node) { node.Spec.Unschedulable = false })
		}
	}
}

func (w *world) collectPodsOf(node string) {
	for _, pod := range fakecluster.List[*corev1.Pod](w) {
		if pod.Spec.NodeName == node {
			w.collect(pod)
		}
	}
}

// collect is what the garbage collector of pods does with one whose node does not exist, or is out
// of service.
func (w *world) collect(pod *corev1.Pod) {
	if !hasEnded(pod) {
		fakecluster.Update(w, fakecluster.KubeControllerManager, pod, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			disrupt(p, "DeletionByPodGC")
		})
	}
	if pod.DeletionTimestamp == nil {
		fakecluster.Delete(w, fakecluster.KubeControllerManager, pod)
	}
}

func disrupt(pod *corev1.Pod, reason string) {
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason})
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// onItsNode writes a PV that is reachable from its node only.
func onItsNode(r *fakecluster.Run) fakecluster.Exit {
	if r.Verb != contract.Provision || r.Request.SelectedNode == "" {
		return fakecluster.Works(r)
	}
	r.CreateVolume()
	r.WritePV(func(pv *corev1.PersistentVolume) {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{r.Request.SelectedNode}}},
		}}}}
	})
	return fakecluster.Exit{}
}

// setWaits says why no container starts, or nothing if they do.
func (w *world) setWaits(why string) string {
	for name, image := range w.Images {
		image.Waits = why
		w.Images[name] = image
	}
	return "all"
}
