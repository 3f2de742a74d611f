package fakecluster

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Scheduler is the scheduler's name in the history.
const Scheduler = "kube-scheduler"

// CreateNode adds a node, whose hostname label is its name unless another is given.
func (c *Cluster) CreateNode(name string, hostname ...string) *corev1.Node {
	return Create(c, Admin, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: append(slices.Clip(hostname), name)[0]}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})
}

// SelectNode is a change of a claim: a node is selected.
func SelectNode(node string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) { Annotate(claim, AnnSelectedNode, node) }
}

// selectNode is the scheduler's choice for a claim whose pod it places. It knows nothing of the
// storage.
func (c *Cluster) selectNode(claim *corev1.PersistentVolumeClaim) {
	if len(c.Choices) == 0 {
		return
	}
	set(c, Scheduler, claim, SelectNode(c.Choices[0]))
	if len(c.Choices) > 1 {
		c.Choices = c.Choices[1:]
	}
}

// assignNode gives a pod that is about to be written a node: any, unless it must go to some. A pod
// with a scheduling gate gets none.
func (c *Cluster) assignNode(pod *corev1.Pod) {
	if IsGated(pod) {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated, Message: "Scheduling is blocked due to non-empty scheduling gates",
		}}
		return
	}
	matches := func(*corev1.Node) bool { return true }
	switch affinity := pod.Spec.Affinity; {
	case affinity != nil && affinity.NodeAffinity != nil:
		need := nodeaffinity.NewLazyErrorNodeSelector(affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		matches = func(node *corev1.Node) bool { matches, err := need.Match(node); return matches && err == nil }
	case !c.isDead("node-1"):
		c.place(pod, "node-1")
		return
	}
	setUnschedulable(pod)
	for _, node := range shared[*corev1.Node](c) {
		if matches(node) && c.takesPods(node.Name) {
			c.place(pod, node.Name)
		}
	}
}

// place gives a pod a node. The API server writes by its own clock when it did
// (pkg/registry/core/pod/storage/storage.go, setPodNodeAndMetadata).
func (c *Cluster) place(pod *corev1.Pod, node string) {
	pod.Spec.NodeName = node
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: c.now()}}
}

func setUnschedulable(pod *corev1.Pod) {
	pod.Spec.NodeName = ""
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no node matches",
	}}
}

func (c *Cluster) isDead(node string) bool { return c.Frozen[node] || c.CutOff[node] }

func (c *Cluster) takesPods(node string) bool {
	return !c.isDead(node) && (c.Cordoned == "" || !strings.HasPrefix(node, c.Cordoned))
}

// IsGated reports whether a pod has a scheduling gate.
func IsGated(pod *corev1.Pod) bool { return len(pod.Spec.SchedulingGates) > 0 }

// schedule tries again to place a pod. One that is deleted meanwhile is ended by the garbage
// collector of pods.
func (c *Cluster) schedule(pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil {
		set(c, KubeControllerManager, pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
		return
	}
	placed := pod.DeepCopy()
	placed.Status.Conditions = nil
	c.assignNode(placed)
	if placed.Spec.NodeName != "" || !slices.Equal(placed.Status.Conditions, pod.Status.Conditions) {
		set(c, Scheduler, pod, func(p *corev1.Pod) {
			p.Spec.NodeName, p.Status.Conditions = placed.Spec.NodeName, placed.Status.Conditions
		})
	}
}
