package controller_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// podWithoutJob returns a pod that runs, on a node that does not answer, whose claim was deleted and
// whose Job was deleted with its finalizers. The claim second waits for its slot.
func (w *world) podWithoutJob(silence func()) *corev1.Pod {
	w.T.Helper()
	pod := w.runningPod(worksLong)
	w.CreateClaim("second")
	w.Advance(2 * time.Second)
	silence()
	fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
	w.Advance(2 * time.Second)
	fakecluster.Vanish(w, fakecluster.List[*batchv1.Job](w)[0])
	w.Advance(2 * time.Second)
	return pod
}

func TestPodWithoutAJobOnALostNodeHoldsNoSlotForEver(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := w.podWithoutJob(w.lose)
		w.Advance(time.Hour)
		if len(w.Events.About("PersistentVolumeClaim/second", "WaitingForSlot")) == 0 {
			w.T.Error("after an hour the claim second waits, and no event says for what")
		}
		w.force(pod)
		w.Advance(6 * time.Hour)
		if !w.IsBound("second")() {
			w.T.Error("the claim second is not bound 6 h after the pod was deleted by force")
		}
	})
}

func TestPodWithoutAJobThatIsForcedEarlyHoldsNoSlotForEver(t *testing.T) {
	inWorld(t, func(w *world) {
		w.force(w.podWithoutJob(w.lose))
		w.Advance(24 * time.Hour)
		if !w.IsBound("second")() {
			w.T.Error("the claim second is not bound a day after the only other pod of the class was deleted by force")
		}
	})
}

// The node answers by its Ready condition, and never reports the end of the pod.
func TestPodWithoutAJobIsReleasedAtItsDeadline(t *testing.T) {
	inWorld(t, func(w *world) {
		pod := w.podWithoutJob(func() { w.Frozen["node-1"] = true })
		w.force(pod)
		w.Advance(15 * time.Minute)
		left := fakecluster.Get[*corev1.Pod](w, pod.Namespace, pod.Name)
		if left != nil && slices.Contains(left.Finalizers, jobs.FinalizerRecord) {
			w.T.Errorf("the pod still has the finalizers %v", left.Finalizers)
		}
	})
}

// An administrator strips the Job of a run at work and points the config to another storage, which
// gets the claim's volume. Nothing else knows of what the pod has made in the first.
func TestWhatAPodWithoutAJobMadeUnderAnotherRevisionIsReported(t *testing.T) {
	for another, times := range map[bool]int{true: 1, false: 0} {
		inWorld(t, func(w *world) {
			pod := w.runningPod(fakecluster.Image{Does: fakecluster.Halfway(75), Takes: 5 * time.Minute})
			if another {
				w.correct("server", "another")
			}
			w.Advance(time.Second)
			fakecluster.Vanish(w, fakecluster.List[*batchv1.Job](w)[0])
			w.Advance(time.Hour)
			if w.IsBound("data")() != another {
				w.T.Errorf("the claim is bound: %t", !another)
			}
			w.MustEmit("Pod/"+pod.Name, "LeftBehind", times)
		})
	}
}
