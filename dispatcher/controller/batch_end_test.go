package controller_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// A Job that the API server refuses for one request's sake is made without company.
func TestItem10AJobThatIsRefusedForOneRequestIsMadeForTheOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-parallel", "1", "batch-size", "8")
		bad := ""
		w.server.refusing(func(_, _ string, obj object) error {
			if job, ok := obj.(*batchv1.Job); ok && bad != "" && slices.Contains(jobs.UIDs(job), bad) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, job.Name, errors.New("a webhook says no"))
			}
			return nil
		})
		w.start()
		w.claim("first")
		w.until("it runs", time.Minute, func() bool { return len(w.made("")) == 1 })
		bad = string(w.claim("bad").UID)
		for i := range 5 {
			w.claim(fmt.Sprintf("good-%d", i))
		}
		w.until("the good are bound", time.Minute, func() bool { return len(w.storage) == 6 })
		w.mustHave(aboutClaim("bad"), "LaunchFailed", []string{"a webhook says no"})
		w.mustTell(aboutClaim("good-0"), "LaunchFailed", 0)
	})
}

// One that leaves a batch which cannot start does not take it from the others. When nobody waits any more it
// is cancelled.
func TestItem10ABatchThatCannotStartIsCancelledWhenAllHaveLeft(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-parallel", "1", "batch-size", "8")
		w.start()
		w.claim("first")
		w.until("the first pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
		for _, name := range []string{"a", "b", "c"} {
			w.claim(name)
			w.stuck[name] = true
		}
		w.until("the batch is there", time.Minute, func() bool { return len(w.made("")) == 2 })
		add(w, kcm, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "no-pod", Namespace: home}, Type: corev1.EventTypeWarning,
			Reason: "FailedCreate", Message: "exceeded quota: pods",
		})
		w.run(30 * time.Second)
		w.mustSay(aboutClaim("c"), "FailedCreate", "exceeded quota: pods")
		drop(w, user, w.now("b"))
		w.run(time.Minute)
		job := w.made("")[1].now.(*batchv1.Job)
		if now := get[*batchv1.Job](w, home, job.Name); now == nil || now.DeletionTimestamp != nil {
			w.t.Fatal("the batch was cancelled although two wait for it")
		}
		drop(w, user, w.now("a"))
		drop(w, user, w.now("c"))
		w.until("it is cancelled, and nothing is held", time.Minute, func() bool { return len(w.records()) == 0 })
		w.mustRun("provision") // nothing of the batch was ever made, so there is nothing to undo
	})
}

func TestItem10ADisruptedBatchCountsForNobody(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-parallel", "1", "batch-size", "8", "max-attempts", "1")
		w.start()
		w.behind("a", "b", "c")
		w.until("the batch runs", time.Minute, func() bool { return len(w.running()) == 1 })
		drop(w, admin, w.running()[0])
		w.until("all are bound", time.Minute, w.allBound)
		if got := w.batches(""); !slices.Equal(got, []int{1, 3, 1, 1, 1}) {
			w.t.Errorf("Jobs for %v claims", got)
		}
		for _, name := range []string{"a", "b", "c"} {
			if a := w.now(name).Annotations; a[contract.AnnAttempts] != "1" {
				w.t.Errorf("%s shows %v", name, a)
			}
		}
	})
}

// burstInBatches: a burst, of which one request is bad, is served and deleted.
func burstInBatches(w *world, last int64) {
	w.goldClass(except("bad", fails(65, "claim: no")), "max-parallel", "1", "batch-size", "4")
	w.start(last)
	w.images[gold] = image{does: w.images[gold].does, takes: 5 * time.Second}
	for _, name := range []string{"a", "b", "bad", "c", "d"} {
		w.claim(name)
	}
	w.until("the good are bound", time.Hour, func() bool { return len(w.storage) == 4 })
	w.until("the bad one says so", time.Hour, func() bool { return w.now("bad").Annotations[contract.AnnMessage] == "no" })
	for _, claim := range every[*corev1.PersistentVolumeClaim](w) {
		drop(w, user, claim)
	}
	w.until("nothing is left", 3*time.Hour, w.empty)
	w.until("the Jobs expire", 3*time.Hour, func() bool { return len(every[*batchv1.Job](w)) == 0 })
}

// Whatever the write after which a dispatcher dies, each claim of a batch comes to its end.
func TestItem10ADispatcherThatDiesAmidABatchIsFollowedByAnother(t *testing.T) {
	var writes int64
	inWorld(t, func(w *world) { burstInBatches(w, 0); writes = w.dispatcherWrites() })
	for last := range writes {
		inWorld(t, func(w *world) { burstInBatches(w, last+1) })
	}
	inWorld(t, func(w *world) {
		w.fragile = true
		burstInBatches(w, 1)
	})
	t.Logf("%d deaths", writes)
}

// The looks at a burst grow with its claims, not with the square of a batch.
func TestItem10WorkIsLinearInTheBatch(t *testing.T) {
	looks := func(size int) (n int64) {
		inWorld(t, func(w *world) {
			w.goldClass(works, "max-parallel", "1", "batch-size", fmt.Sprint(size))
			w.start()
			for i := range size {
				w.claim(fmt.Sprintf("data-%d", i))
			}
			w.until("all are bound and settled", time.Hour, func() bool { return len(w.storage) == size && w.allBound() && len(w.records()) == 0 })
			n = w.looks.Load()
		})
		return n
	}
	few, many := looks(16), looks(64)
	t.Logf("%d looks for 16 claims, %d for 64", few, many)
	if many > 6*few || many > 40*64 {
		t.Errorf("%d looks for 16 claims, %d for 64: more than linear", few, many)
	}
}

func TestItem10VolumesOfOneRevisionGrowTogether(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(func(r *run) ending {
			if r.verb == contract.Expand && r.request.Name == "data-3" {
				return ending{65, "claim: too much"}
			}
			return works(r)
		}, "max-parallel", "1", "batch-size", "8")
		w.start()
		for i := range 7 {
			w.settled(fmt.Sprintf("data-%d", i))
		}
		w.images[gold] = image{does: w.images[gold].does, takes: 10 * time.Second}
		for _, claim := range every[*corev1.PersistentVolumeClaim](w) {
			edit(w, user, claim, func(c *corev1.PersistentVolumeClaim) {
				c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
			})
		}
		w.until("six have grown", 5*time.Minute, func() bool {
			n := 0
			for _, claim := range every[*corev1.PersistentVolumeClaim](w) {
				if claim.Status.Capacity.Storage().String() == "2Gi" {
					n++
				}
			}
			return n == 6
		})
		w.run(time.Second)
		if n := len(w.made(contract.Expand)); n > 4 {
			w.t.Errorf("%d Jobs for 7 claims: %v", n, w.batches(contract.Expand))
		}
		if got := statusOfClaim(w.now("data-3")); got != infeasible {
			w.t.Errorf("the one that cannot grow says %q", got)
		}
		w.mustTell(aboutClaim("data-3"), "VolumeResizeFailed", 1, "too much")
		w.mustNotSayTo("PersistentVolumeClaim/data-4", "too much")
	})
}

func statusOfClaim(c *corev1.PersistentVolumeClaim) corev1.ClaimResourceStatus {
	return c.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
}
