package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
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

// An administrator strips the Job of a run that has made a volume. The next run may end before it has
// looked for one, and then nothing would lead to it.
func TestWhatAPodWithoutAJobMayHaveMadeIsReported(t *testing.T) {
	for name, next := range map[string]fakecluster.Image{
		"77": {Does: fakecluster.Always(fakecluster.Fails(77, ""))}, "78": {Does: fakecluster.Always(fakecluster.Fails(78, ""))},
		"no image": {Does: fakecluster.Works, Waits: "ErrImagePull"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.runningPod(worksBeforePV)
				claim := w.Claim("data")
				w.Advance(5 * time.Second)
				if !w.Storage[string(claim.UID)] {
					w.T.Fatal("no volume yet")
				}
				w.Images[fakecluster.GoldImage] = next
				fakecluster.Vanish(w, fakecluster.List[*batchv1.Job](w)[0])
				w.Advance(2 * time.Minute)
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Advance(5 * time.Hour)
				if w.Storage[string(claim.UID)] && len(w.Events.About("", "LeftBehind")) == 0 {
					w.T.Errorf("after the runs %v its volume is in the storage, and no event says so", w.Verbs())
				}
			})
		})
	}
}

func TestWhatABatchWithoutItsJobMayHaveMadeIsReportedForEachClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "8")
		w.Start()
		w.behind("one", "two", "three")
		w.Images[fakecluster.GoldImage] = worksBeforePV
		var claims []*corev1.PersistentVolumeClaim
		for _, name := range []string{"one", "two", "three"} {
			claims = append(claims, w.Claim(name))
		}
		w.Advance(10 * time.Second)
		if n := w.batches(contract.Provision); n[len(n)-1] != 3 || len(w.RunningPods()) != 1 || !w.Storage[string(claims[1].UID)] {
			w.T.Fatalf("batches %v, storage %v", n, w.Storage)
		}
		fakecluster.Delete(w, fakecluster.User, claims[1])
		fakecluster.Delete(w, fakecluster.User, claims[2])
		w.Advance(time.Second)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		all := fakecluster.List[*batchv1.Job](w)
		fakecluster.Vanish(w, all[slices.IndexFunc(all, func(job *batchv1.Job) bool { return len(jobs.UIDs(job)) == 3 })])
		w.Advance(3 * time.Hour)
		for _, claim := range claims[1:] {
			told := false
			for _, e := range w.Events.About("", "LeftBehind") {
				told = told || strings.Contains(e.Note, string(claim.UID))
			}
			if w.Storage[string(claim.UID)] && !told {
				w.T.Errorf("LEAK: the volume of the claim %s is in the storage, nothing leads to it, and no event names it", claim.Name)
			}
		}
	})
}
