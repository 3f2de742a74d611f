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

func TestPodWithoutAJobOnALostNodeHoldsNoSlotForEver(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "timeout", "10m")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Takes: 5 * time.Minute, Does: fakecluster.Works}
		w.startWithNodes()
		first := w.CreateClaim("first")
		w.Until("the first runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		pod := w.RunningPods()[0]
		w.CreateClaim("second")
		w.Advance(2 * time.Second)
		w.lose()
		fakecluster.Delete(w, fakecluster.User, first)
		w.Advance(2 * time.Second)
		job := fakecluster.List[*batchv1.Job](w)[0]
		fakecluster.Update(w, fakecluster.Admin, job, func(j *batchv1.Job) { j.Finalizers = nil })
		fakecluster.Delete(w, fakecluster.Admin, job)
		w.Advance(time.Hour)
		if len(w.Events.About("PersistentVolumeClaim/second", "")) == 0 {
			w.T.Errorf("after an hour the claim second waits, and no event says why")
		}
		w.force(pod)
		w.Advance(6 * time.Hour)
		if !w.IsBound("second")() {
			w.T.Errorf("the claim second is not bound 6 h after the pod was deleted by force (deadline 10 min)")
		}
	})
}

func TestPodWithoutAJobThatIsForcedEarlyHoldsNoSlotForEver(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "timeout", "10m")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Takes: 5 * time.Minute, Does: fakecluster.Works}
		w.startWithNodes()
		first := w.CreateClaim("first")
		w.Until("the first runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		pod := w.RunningPods()[0]
		w.CreateClaim("second")
		w.Advance(2 * time.Second)
		w.lose()
		fakecluster.Delete(w, fakecluster.User, first)
		w.Advance(2 * time.Second)
		job := fakecluster.List[*batchv1.Job](w)[0]
		fakecluster.Update(w, fakecluster.Admin, job, func(j *batchv1.Job) { j.Finalizers = nil })
		fakecluster.Delete(w, fakecluster.Admin, job)
		w.Advance(2 * time.Second)
		w.force(pod)
		w.Advance(24 * time.Hour)
		if !w.IsBound("second")() {
			w.T.Errorf("the claim second is not bound a day after the only other pod of the class was deleted by force (its deadline is 10 min); events about it: %d", len(w.Events.About("PersistentVolumeClaim/second", "")))
		}
	})
}

// The node answers by its Ready condition, and never reports the end of the pod.
func TestPodWithoutAJobIsReleasedAtItsDeadline(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "timeout", "10m")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Takes: 5 * time.Minute, Does: fakecluster.Works}
		w.startWithNodes()
		claim := w.CreateClaim("data")
		w.Until("it runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		pod := w.RunningPods()[0]
		w.Frozen["node-1"] = true
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(2 * time.Second)
		fakecluster.Vanish(w, fakecluster.List[*batchv1.Job](w)[0])
		w.Advance(2 * time.Second)
		w.force(pod)
		w.Advance(15 * time.Minute)
		for _, left := range fakecluster.List[*corev1.Pod](w) {
			if slices.Contains(left.Finalizers, jobs.FinalizerRecord) {
				w.T.Errorf("the pod %s still has the finalizers %v", left.Name, left.Finalizers)
			}
		}
	})
}
