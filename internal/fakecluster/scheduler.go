package fakecluster

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Scheduler is the scheduler's name in the history.
const Scheduler = "kube-scheduler"

// CreateNode adds a node, whose hostname label is its name unless another is given.
func (c *Cluster) CreateNode(name string, hostname ...string) *corev1.Node {
	host := name
	if len(hostname) > 0 {
		host = hostname[0]
	}
	return Create(c, Admin, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: host}}})
}

// SelectNode is a change of a claim: a node is selected.
func SelectNode(node string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) { Annotate(claim, AnnSelectedNode, node) }
}

// selectNode is the scheduler's choice for a claim whose pod it places. It does not know what the storage has.
func (c *Cluster) selectNode(claim *corev1.PersistentVolumeClaim) {
	if len(c.Choices) == 0 {
		return
	}
	set(c, Scheduler, claim, SelectNode(c.Choices[0]))
	if len(c.Choices) > 1 {
		c.Choices = c.Choices[1:]
	}
}

// assignNode gives a pod that is about to be written a node: any, unless it must go to some.
func (c *Cluster) assignNode(pod *corev1.Pod) {
	pod.Spec.NodeName = "node-1"
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil {
		return
	}
	need := nodeaffinity.NewLazyErrorNodeSelector(affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	pod.Spec.NodeName = ""
	for _, node := range shared[*corev1.Node](c) {
		if matches, err := need.Match(node); matches && err == nil && (c.Cordoned == "" || !strings.HasPrefix(node.Name, c.Cordoned)) {
			pod.Spec.NodeName = node.Name
		}
	}
	if pod.Spec.NodeName == "" {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no node matches",
		}}
	}
}

// schedule tries again to place a pod. One that is deleted meanwhile is ended by the garbage collector of pods.
func (c *Cluster) schedule(pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil {
		set(c, KubeControllerManager, pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
		return
	}
	placed := pod.DeepCopy()
	c.assignNode(placed)
	if placed.Spec.NodeName != "" {
		set(c, Scheduler, pod, func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Conditions = placed.Spec.NodeName, nil })
	}
}
