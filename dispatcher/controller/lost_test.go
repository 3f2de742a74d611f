package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// force deletes a pod without waiting for its node.
func (w *world) force(pod *corev1.Pod) {
	drop(w, admin, pod)
	edit(w, admin, pod, func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = new(int64(0)) })
}

// collectOrphan is what the garbage collector of pods does when their node has gone.
func (w *world) collectOrphan(pod *corev1.Pod) {
	edit(w, kcm, pod, func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC",
		})
	})
	drop(w, kcm, pod)
}

func TestRule05APodOnALostNodeIsWaitedForAndTheClaimSaysSo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.images[gold] = image{does: works, takes: 5 * time.Minute}
		w.start()
		w.claim("data")
		w.until("a pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
		pod := w.running()[0]
		w.lostNode = true
		drop(w, "node-lifecycle-controller", pod)
		w.run(time.Hour)
		if n := len(w.made("")); n != 1 {
			w.t.Errorf("%d Jobs while nobody knows whether the pod still runs", n)
		}
		w.mustNotSay("next attempt in 10s")
		w.mustHave(onData, "WaitingForNode", []string{pod.Name, "--force"})
		if len(w.events.said(onData, "WaitingForNode")) == 0 {
			w.t.Error("the claim does not say what it waits for")
		}
		w.lostNode = false
		w.until("the claim is bound", 10*time.Minute, w.bound("data"))
	})
}

func TestRule05AClaimDeletedWhileItsNodeIsLostIsUndoneOnceItIsBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.images[gold] = image{does: always(halfway(75)), takes: 5 * time.Minute}
		w.start()
		claim := w.claim("data")
		w.until("a pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
		w.lostNode = true
		drop(w, "node-lifecycle-controller", w.running()[0])
		drop(w, user, claim)
		w.until("its Job is deleted", 2*time.Minute, func() bool { return every[*batchv1.Job](w)[0].DeletionTimestamp != nil })
		w.run(time.Hour)
		if n := len(w.made(contract.Delete)); n != 0 {
			w.t.Errorf("%d undos while nobody knows whether the pod still runs", n)
		}
		w.lostNode = false
		w.until("nothing is left", 10*time.Minute, w.empty)
	})
}

// runsLost has a pod of a run of the claim data on a node that does not answer, in its first minute of ten.
func (w *world) runsLost(does func(*run) ending) *corev1.Pod {
	w.goldClass(does)
	w.images[gold] = image{does: does, takes: 5 * time.Minute}
	w.start()
	w.claim("data")
	w.until("a pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
	w.lostNode = true
	return w.running()[0]
}

// mustStartAfterDeadline checks that the second Job came when the pod's own deadline had passed, and soon then.
func (w *world) mustStartAfterDeadline(pod *corev1.Pod) {
	w.t.Helper()
	deadline := pod.Status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
	if late := w.made("")[1].at.Sub(deadline); late < 0 || late > time.Minute {
		w.t.Errorf("the next Job came %s after the deadline of a pod that may run", late)
	}
}

func TestRule05AfterAForceDeletionThePodsDeadlineIsWaitedOut(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := w.runsLost(works)
		w.run(time.Minute)
		w.force(pod)
		w.until("the next Job", time.Hour, func() bool { return len(w.made("")) == 2 })
		w.mustStartAfterDeadline(pod)
		w.mustHave(onData, "WaitingForNode", []string{pod.Labels[batchv1.JobNameLabel]})
		if len(w.events.said(onData, "WaitingForNode")) == 0 {
			w.t.Error("the claim does not say what it waits for")
		}
		w.lostNode = false
		w.until("the claim is bound", 10*time.Minute, w.bound("data"))
		w.until("no pod is kept", 3*time.Hour, func() bool { return len(every[*corev1.Pod](w)) == 0 })
	})
}

func TestRule05APodThatItsNodesGarbageCollectorTookIsWaitedOut(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := w.runsLost(works)
		w.collectOrphan(pod)
		w.until("the next Job", time.Hour, func() bool { return len(w.made("")) == 2 })
		w.mustStartAfterDeadline(pod)
	})
}

func TestRule05AnUndoAfterAForceDeletionWaitsOutThePodsDeadline(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := w.runsLost(always(halfway(75)))
		drop(w, user, w.now("data"))
		w.run(time.Minute)
		w.force(pod)
		w.until("the undo", time.Hour, func() bool { return len(w.made(contract.Delete)) == 1 })
		w.mustStartAfterDeadline(pod)
	})
}

// The kubelet's word ends the wait: a pod that was deleted as usual is followed by another at the usual pace, and
// so is one that was deleted by force on a node that answers.
func TestRule05APodThatItsNodeHasEndedIsNotWaitedOut(t *testing.T) {
	for name, remove := range map[string]func(*world, *corev1.Pod){
		"deleted":  func(w *world, pod *corev1.Pod) { drop(w, user, pod) },
		"by force": func(w *world, pod *corev1.Pod) { w.force(pod) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				pod := w.runsLost(works)
				w.lostNode = false
				remove(w, pod)
				w.until("the next Job", 15*time.Second, func() bool { return len(w.made("")) == 2 })
			})
		})
	}
}

func TestRule05AJobThatIsSuspendedPastItsTimeoutIsDeletedAndFollowedByAnother(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "timeout", "2m")
		w.stuck["data"] = true
		w.start()
		w.claim("data")
		w.until("the Job", time.Minute, func() bool { return len(w.made("")) == 1 })
		job := every[*batchv1.Job](w)[0]
		edit(w, "kueue", job, func(j *batchv1.Job) { j.Spec.Suspend, j.Status.StartTime = new(true), nil })
		w.run(2 * time.Minute)
		if n := len(w.made("")); n != 1 {
			w.t.Fatalf("%d Jobs before its timeout", n)
		}
		w.mustSay(onData, "JobSuspended", "suspended")
		w.stuck["data"] = false
		w.until("the claim is bound", 3*time.Minute, w.bound("data"))
	})
}
