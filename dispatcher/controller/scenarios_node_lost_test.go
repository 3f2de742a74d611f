package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// force deletes a pod without waiting for its node.
func (w *world) force(pod *corev1.Pod) {
	fakecluster.Delete(w, fakecluster.Admin, pod)
	fakecluster.Update(w, fakecluster.Admin, pod, func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = new(int64(0)) })
}

// collectOrphan is what the garbage collector of pods does when their node no longer exists.
func (w *world) collectOrphan(pod *corev1.Pod) {
	fakecluster.Update(w, fakecluster.KubeControllerManager, pod, func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC",
		})
	})
	fakecluster.Delete(w, fakecluster.KubeControllerManager, pod)
}

func TestEndedByItsNodeSoAPodOnALostNodeIsWaitedFor(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
		w.Start()
		w.CreateClaim("data")
		w.Until("a pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		pod := w.RunningPods()[0]
		w.NodeLost = true
		fakecluster.Delete(w, "node-lifecycle-controller", pod)
		w.Advance(time.Hour)
		if n := len(w.CreatedJobs("")); n != 1 {
			w.T.Errorf("%d Jobs while nobody knows whether the pod still runs", n)
		}
		w.MustNotContain("", "next attempt in 10s")
		w.MustContain(onData, "WaitingForNode", []string{pod.Name, "kubectl taint nodes node-1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"})
		if len(w.Events.About(onData, "WaitingForNode")) == 0 {
			w.T.Error("the claim does not say what it waits for")
		}
		w.NodeLost = false
		w.Until("the claim is bound", 10*time.Minute, w.IsBound("data"))
	})
}

func TestEndedByItsNodeBeforeTheUndoOfADeletedClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Always(fakecluster.Halfway(75)), Takes: 5 * time.Minute}
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("a pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		w.NodeLost = true
		fakecluster.Delete(w, "node-lifecycle-controller", w.RunningPods()[0])
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("its Job is deleted", 2*time.Minute, func() bool { return fakecluster.List[*batchv1.Job](w)[0].DeletionTimestamp != nil })
		w.Advance(time.Hour)
		if n := len(w.CreatedJobs(contract.Delete)); n != 0 {
			w.T.Errorf("%d undos while nobody knows whether the pod still runs", n)
		}
		w.NodeLost = false
		w.Until("nothing is left", 10*time.Minute, w.Empty)
	})
}

// runsLost has a pod of a run of the claim data on a node that does not answer, in its first minute
// of ten.
func (w *world) runsLost(does func(*fakecluster.Run) fakecluster.Exit) *corev1.Pod {
	w.SetUpGold(does)
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: does, Takes: 5 * time.Minute}
	w.Start()
	w.CreateClaim("data")
	w.Until("a pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
	w.NodeLost = true
	return w.RunningPods()[0]
}

// mustStartAfterDeadline checks that the second Job came when the pod's own deadline, its grace
// period of 30 s and a minute for its node's clock had passed, and soon then.
func (w *world) mustStartAfterDeadline(pod *corev1.Pod) {
	w.T.Helper()
	deadline := pod.Status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds)*time.Second + 90*time.Second)
	if late := w.CreatedJobs("")[1].At.Sub(deadline); late < 0 || late > time.Minute {
		w.T.Errorf("the next Job came %s after the deadline of a pod that may run", late)
	}
}

func TestEndedByItsNodeOrWaitedOutAfterAForceDeletion(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := w.runsLost(fakecluster.Works)
		w.Advance(time.Minute)
		w.force(pod)
		w.Until("the next Job", time.Hour, func() bool { return len(w.CreatedJobs("")) == 2 })
		w.mustStartAfterDeadline(pod)
		w.MustContain(onData, "WaitingForNode", []string{pod.Labels[batchv1.JobNameLabel]})
		if len(w.Events.About(onData, "WaitingForNode")) == 0 {
			w.T.Error("the claim does not say what it waits for")
		}
		w.NodeLost = false
		w.Until("the claim is bound", 10*time.Minute, w.IsBound("data"))
		w.Until("no pod is kept", 3*time.Hour, func() bool { return len(fakecluster.List[*corev1.Pod](w)) == 0 })
	})
}

func TestEndedByItsNodeOrWaitedOutAfterPodGC(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := w.runsLost(fakecluster.Works)
		w.collectOrphan(pod)
		w.Until("the next Job", time.Hour, func() bool { return len(w.CreatedJobs("")) == 2 })
		w.mustStartAfterDeadline(pod)
	})
}

func TestEndedByItsNodeOrWaitedOutBeforeAnUndo(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := w.runsLost(fakecluster.Always(fakecluster.Halfway(75)))
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Advance(time.Minute)
		w.force(pod)
		w.Until("the undo", time.Hour, func() bool { return len(w.CreatedJobs(contract.Delete)) == 1 })
		w.mustStartAfterDeadline(pod)
	})
}

// What the kubelet reports ends the wait: a pod that was deleted as usual is followed by another at
// the usual pace, and so is one that was deleted by force on a node that answers.
func TestEndedByItsNodeIsNotWaitedOut(t *testing.T) {
	for name, remove := range map[string]func(*world, *corev1.Pod){
		"deleted":  func(w *world, pod *corev1.Pod) { fakecluster.Delete(w, fakecluster.User, pod) },
		"by force": func(w *world, pod *corev1.Pod) { w.force(pod) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				pod := w.runsLost(fakecluster.Works)
				w.NodeLost = false
				remove(w, pod)
				w.Until("the next Job", 15*time.Second, func() bool { return len(w.CreatedJobs("")) == 2 })
			})
		})
	}
}

func TestAJobThatIsSuspendedPastItsTimeoutIsReplaced(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "timeout", "2m")
		w.NoPodFor["data"] = true
		w.Start()
		w.CreateClaim("data")
		w.Until("the Job", time.Minute, func() bool { return len(w.CreatedJobs("")) == 1 })
		job := fakecluster.List[*batchv1.Job](w)[0]
		fakecluster.Update(w, "kueue", job, func(j *batchv1.Job) { j.Spec.Suspend, j.Status.StartTime = new(true), nil })
		w.Advance(2 * time.Minute)
		if n := len(w.CreatedJobs("")); n != 1 {
			w.T.Fatalf("%d Jobs before its timeout", n)
		}
		w.MustEmitSome(onData, "JobSuspended", "suspended")
		w.NoPodFor["data"] = false
		w.Until("the claim is bound", 3*time.Minute, w.IsBound("data"))
	})
}
