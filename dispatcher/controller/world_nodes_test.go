package controller_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

const scheduler = "kube-scheduler"

// node adds a node, whose hostname label is its name unless another is given.
func (w *world) node(name string, hostname ...string) *corev1.Node {
	host := name
	if len(hostname) > 0 {
		host = hostname[0]
	}
	return add(w, admin, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: host}}})
}

// on is a change of a claim: a node is selected.
func on(node string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { annotate(c, annNode, node) }
}

// choose is the scheduler's choice for a claim whose pod it places. It does not know what the storage has.
func (w *world) choose(claim *corev1.PersistentVolumeClaim) {
	if len(w.choices) == 0 {
		return
	}
	edit(w, scheduler, claim, on(w.choices[0]))
	if len(w.choices) > 1 {
		w.choices = w.choices[1:]
	}
}

// assign gives a pod a node: any, unless it must go to some.
func (w *world) assign(pod *corev1.Pod) {
	pod.Spec.NodeName = "node-1"
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil {
		return
	}
	need := nodeaffinity.NewLazyErrorNodeSelector(affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	pod.Spec.NodeName = ""
	for _, node := range every[*corev1.Node](w) {
		if fits, err := need.Match(node); fits && err == nil && node.Name != w.cordoned {
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
func (w *world) schedule(pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil {
		edit(w, kcm, pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
		return
	}
	w.assign(pod)
	if pod.Spec.NodeName != "" {
		edit(w, scheduler, pod, func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Conditions = pod.Spec.NodeName, nil })
	}
}
