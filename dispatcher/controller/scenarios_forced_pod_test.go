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

// runningPod sets up a class with max-parallel 1 whose container works for five minutes, and returns
// the pod of the claim data when it runs.
func (w *world) runningPod(image fakecluster.Image) *corev1.Pod {
	w.T.Helper()
	w.SetUpGold(fakecluster.Works, "max-parallel", "1", "timeout", "10m")
	w.Images[fakecluster.GoldImage] = image
	w.startWithNodes()
	w.CreateClaim("data")
	w.Until("a pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
	return w.RunningPods()[0]
}

// The images of these scenarios work for minutes: long before they make anything, between the volume
// and its PV, or after the PV.
var (
	worksLong     = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
	worksAfterPV  = fakecluster.Image{Phases: fakecluster.InPhases(time.Second, time.Second, 5*time.Minute)}
	worksBeforePV = fakecluster.Image{Phases: fakecluster.InPhases(time.Second, 5*time.Minute, time.Second)}
)

func TestDeleteWaitsForAProvisionWhosePodWasDeletedByForce(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := w.runningPod(worksAfterPV)
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.lose()
		w.force(pod)
		w.Advance(2 * time.Minute)
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Advance(2 * time.Minute)
		w.mustNotOverlap(pod, contract.Delete)
	})
}

func TestDeleteWaitsForAnExpandWhosePodWasDeletedByForce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works, "timeout", "10m", "verbs", "provision,delete,expand")
		w.startWithNodes()
		w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Advance(time.Minute)
		w.Images[fakecluster.GoldImage] = worksLong
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
		pod := w.runningPod(worksAfterPV)
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.lose()
		w.force(pod)
		w.CreateClaim("other")
		w.Advance(3 * time.Minute)
		w.mustNotOverlap(pod, contract.Provision)
	})
}
