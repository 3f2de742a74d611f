package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// lose makes the node of all runs silent and not Ready.
func (w *world) lose() {
	const name = "node-1"
	w.Frozen[name] = true
	fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", name), func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	})
}

// vanish removes a pod with its finalizers, so that no trace of it is left.
func (w *world) vanish(pod *corev1.Pod) {
	fakecluster.Update(w, fakecluster.Admin, pod, func(p *corev1.Pod) { p.Finalizers = nil })
	fakecluster.Delete(w, fakecluster.Admin, pod)
}

// startWithNodes starts a dispatcher in a cluster of two nodes.
func (w *world) startWithNodes() {
	w.CreateNode("node-1")
	w.CreateNode("node-2")
	w.Start()
}

// mustNotOverlap fails the test if a run of a verb began while the container of another pod may run
// on a lost node.
func (w *world) mustNotOverlap(pod *corev1.Pod, verb contract.Verb) {
	w.T.Helper()
	deadline := pod.Status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
	for _, c := range w.Server.History() {
		p, is := c.Now.(*corev1.Pod)
		if is && p.UID != pod.UID && p.Status.Phase == corev1.PodRunning && p.Labels[jobs.LabelVerb] == string(verb) && c.At.Before(deadline) {
			w.T.Errorf("%s runs at %s, and the container of %s may run until %s", p.Name, c.At.Format(time.TimeOnly), pod.Name, deadline.Format(time.TimeOnly))
			return
		}
	}
}

// writePV does what the containers of a pod do in their first second.
func (w *world) writePV(pod *corev1.Pod) {
	for _, r := range w.RunsOfPod(pod) {
		r.CreateVolume()
		r.WritePV()
	}
}

func TestDeleteWaitsForAProvisionWhosePodWasDeletedByForce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "timeout", "10m")
		// the container has written its PV at once, and is at work for another while
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
		w.CreateNode("node-1")
		w.CreateNode("node-2")
		w.Start()
		w.CreateClaim("data")
		w.Until("a pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		pod := w.RunningPods()[0]
		w.Frozen = map[string]bool{"node-1": true}
		// what the container does in its first second
		w.writePV(pod)
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", "node-1"), func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		})
		w.force(pod)
		w.Advance(2 * time.Minute)
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Advance(2 * time.Minute)
		deadline := pod.Status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
		for _, c := range w.Server.History() {
			if p, is := c.Now.(*corev1.Pod); is && p.Status.Phase == corev1.PodRunning && p.Labels[jobs.LabelVerb] == string(contract.Delete) {
				w.T.Errorf("%s runs at %s, and the provision's container may run until %s (its node is not Ready)", p.Name, c.At.Format(time.TimeOnly), deadline.Format(time.TimeOnly))
				break
			}
		}
	})
}

func TestDeleteWaitsForAnExpandWhosePodWasDeletedByForce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works, "timeout", "10m", "verbs", "provision,delete,expand")
		w.startWithNodes()
		w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Advance(time.Minute)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
		fakecluster.Update(w, fakecluster.User, w.Claim("data"), func(c *corev1.PersistentVolumeClaim) {
			q := c.Spec.Resources.Requests.Storage().DeepCopy()
			q.Add(q)
			c.Spec.Resources.Requests[corev1.ResourceStorage] = q
		})
		w.Until("the expand runs", 2*time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		pod := w.RunningPods()[0]
		w.lose()
		w.force(pod)
		w.Advance(2 * time.Minute)
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.Advance(3 * time.Minute)
		w.mustNotOverlap(pod, contract.Delete)
	})
}

func TestMaxParallelCountsASuccessWhosePodWasDeletedByForce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "timeout", "10m")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
		w.startWithNodes()
		w.CreateClaim("data")
		w.Until("a pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		pod := w.RunningPods()[0]
		w.lose()
		w.writePV(pod)
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.force(pod)
		w.CreateClaim("other")
		w.Advance(3 * time.Minute)
		w.mustNotOverlap(pod, contract.Provision)
	})
}
