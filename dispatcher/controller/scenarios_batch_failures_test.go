package controller_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// A Job that the API server refuses for one request's sake is made for it alone.
func TestAJobThatIsRefusedForOneRequestIsCreatedForTheOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "8")
		bad := ""
		w.Server.Refuse(func(_, _ string, obj fakecluster.Object) error {
			if job, ok := obj.(*batchv1.Job); ok && bad != "" && slices.Contains(jobs.UIDs(job), bad) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, job.Name, errors.New("a webhook says no"))
			}
			return nil
		})
		w.Start()
		w.CreateClaim("first")
		w.Until("it runs", time.Minute, func() bool { return len(w.CreatedJobs("")) == 1 })
		bad = string(w.CreateClaim("bad").UID)
		for i := range 5 {
			w.CreateClaim(fmt.Sprintf("good-%d", i))
		}
		w.Until("the good are bound", time.Minute, func() bool { return len(w.Storage) == 6 })
		w.MustContain(aboutClaim("bad"), "LaunchFailed", []string{"a webhook says no"})
		w.MustEmit(aboutClaim("good-0"), "LaunchFailed", 0)
	})
}

// A claim whose Job was stripped and deleted again pauses, and is in no Job of another claim until
// then.
func TestAClaimWhoseJobWasStrippedJoinsNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "4")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 3 * time.Second}
		w.Start()
		bad := w.CreateClaim("bad")
		var stripped []time.Time
		w.stripWrites(func(verb string, obj fakecluster.Object) bool {
			job, isJob := obj.(*batchv1.Job)
			is := isJob && verb == "create" && slices.Contains(jobs.UIDs(job), string(bad.UID))
			if is {
				job.Finalizers = nil
				stripped = append(stripped, time.Now())
			}
			return is
		})
		for i := range 200 {
			w.CreateClaim(fmt.Sprintf("good-%d", i))
			change := func(c *corev1.PersistentVolumeClaim) { fakecluster.Annotate(c, "touched", fmt.Sprint(i)) }
			fakecluster.Update(w, fakecluster.User, w.Claim("bad"), change) // so that it asks for a slot again
			w.Advance(time.Second)
		}
		if len(stripped) < 3 {
			w.T.Fatalf("its Job was stripped %d times", len(stripped))
		}
		for i, at := range stripped[1:] {
			if pause := at.Sub(stripped[i]); pause < time.Minute {
				w.T.Errorf("it was in another Job after %s", pause)
			}
		}
	})
}

// One that leaves a batch which cannot start does not take it from the others. When no claim waits
// any more it is cancelled.
func TestABatchThatCannotStartIsCancelledWhenAllItsClaimsAreDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "8")
		w.Start()
		w.CreateClaim("first")
		w.Until("the first pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		for _, name := range []string{"a", "b", "c"} {
			w.CreateClaim(name)
			w.NoPodFor[name] = true
		}
		w.Until("the batch is there", time.Minute, func() bool { return len(w.CreatedJobs("")) == 2 })
		fakecluster.Create(w, fakecluster.KubeControllerManager, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "no-pod", Namespace: fakecluster.ConfigNamespace}, Type: corev1.EventTypeWarning,
			Reason: "FailedCreate", Message: "exceeded quota: pods",
		})
		w.Advance(30 * time.Second)
		w.MustEmitSome(aboutClaim("c"), "FailedCreate", "exceeded quota: pods")
		fakecluster.Delete(w, fakecluster.User, w.Claim("b"))
		w.Advance(time.Minute)
		job := w.CreatedJobs("")[1].Now.(*batchv1.Job)
		if now := fakecluster.Get[*batchv1.Job](w, fakecluster.ConfigNamespace, job.Name); now == nil || now.DeletionTimestamp != nil {
			w.T.Fatal("the batch was cancelled although two wait for it")
		}
		fakecluster.Delete(w, fakecluster.User, w.Claim("a"))
		fakecluster.Delete(w, fakecluster.User, w.Claim("c"))
		w.Until("it is cancelled, and nothing is held", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
		w.MustRun("provision") // nothing of the batch was ever made, so there is nothing to undo
	})
}

func TestADisruptedBatchCountsNoAttempt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "8", "max-attempts", "1")
		w.Start()
		w.behind("a", "b", "c")
		w.Until("the batch runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		fakecluster.Delete(w, fakecluster.Admin, w.RunningPods()[0])
		w.Until("all are bound", time.Minute, w.AllBound)
		if got := w.batches(""); !slices.Equal(got, []int{1, 3, 1, 1, 1}) {
			w.T.Errorf("Jobs for %v claims", got)
		}
		for _, name := range []string{"a", "b", "c"} {
			if a := w.Claim(name).Annotations; a[contract.AnnAttempts] != "1" {
				w.T.Errorf("%s shows %v", name, a)
			}
		}
	})
}

// burstInBatches: a burst, of which one request is bad, is served and deleted.
func burstInBatches(w *world, last int64) {
	w.SetUpGold(except("bad", fakecluster.Fails(65, "claim: no")), "max-parallel", "1", "batch-size", "4")
	w.StartMortal(last)
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: w.Images[fakecluster.GoldImage].Does, Takes: 5 * time.Second}
	for _, name := range []string{"a", "b", "bad", "c", "d"} {
		w.CreateClaim(name)
	}
	w.Until("the good are bound", time.Hour, func() bool { return len(w.Storage) == 4 })
	w.Until("the bad one says so", time.Hour, func() bool { return w.Claim("bad").Annotations[contract.AnnMessage] == "no" })
	for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
		fakecluster.Delete(w, fakecluster.User, claim)
	}
	w.Until("nothing is left", 3*time.Hour, w.Empty)
	w.Until("the Jobs expire", 3*time.Hour, func() bool { return len(fakecluster.List[*batchv1.Job](w)) == 0 })
}

// Whatever the write after which a dispatcher dies, each claim of a batch comes to its end.
func TestDeathAtAnyWriteOfABatchLosesNone(t *testing.T) {
	var writes int64
	inWorld(t, func(w *world) { burstInBatches(w, 0); writes = w.dispatcherWrites() })
	for last := range writes {
		inWorld(t, func(w *world) { burstInBatches(w, last+1) })
	}
	inWorld(t, func(w *world) {
		w.DieAfterEveryWrite = true
		burstInBatches(w, 1)
	})
	t.Logf("%d deaths", writes)
}

// The reconciles at a burst grow with its claims, not with the square of a batch.
func TestWorkIsLinearInTheBatch(t *testing.T) {
	reconciles := func(size int) (n int64) {
		inWorld(t, func(w *world) {
			w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", fmt.Sprint(size))
			w.Start()
			for i := range size {
				w.CreateClaim(fmt.Sprintf("data-%d", i))
			}
			w.Until("all are bound and settled", time.Hour, func() bool { return len(w.Storage) == size && w.AllBound() && len(w.HeldRecords()) == 0 })
			n = w.reconciles()
		})
		return n
	}
	few, many := reconciles(16), reconciles(64)
	t.Logf("%d reconciles for 16 claims, %d for 64", few, many)
	if many > 5*few || many > 40*64 {
		t.Errorf("%d reconciles for 16 claims, %d for 64: more than linear", few, many)
	}
}

func TestVolumesOfOneRevisionAreExpandedInABatch(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Verb == contract.Expand && r.Request.Name == "data-3" {
				return fakecluster.Exit{Code: 65, Message: "claim: too much"}
			}
			return fakecluster.Works(r)
		}, "max-parallel", "1", "batch-size", "8")
		w.Start()
		for i := range 7 {
			w.provisioned(fmt.Sprintf("data-%d", i))
		}
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: w.Images[fakecluster.GoldImage].Does, Takes: 10 * time.Second}
		for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
			fakecluster.Update(w, fakecluster.User, claim, func(c *corev1.PersistentVolumeClaim) {
				c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
			})
		}
		w.Until("six have grown", 5*time.Minute, func() bool {
			n := 0
			for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
				if claim.Status.Capacity.Storage().String() == "2Gi" {
					n++
				}
			}
			return n == 6
		})
		w.Until("the one that cannot grow says so", time.Minute, func() bool { return statusOfClaim(w.Claim("data-3")) == infeasible })
		w.Until("its user is told", time.Minute, func() bool { return len(w.Events.About(aboutClaim("data-3"), "VolumeResizeFailed")) > 0 })
		if n := len(w.CreatedJobs(contract.Expand)); n > 4 {
			w.T.Errorf("%d Jobs for 7 claims: %v", n, w.batches(contract.Expand))
		}
		w.MustEmit(aboutClaim("data-3"), "VolumeResizeFailed", 1, "too much")
		w.MustNotContain("PersistentVolumeClaim/data-4", "too much")
	})
}

func statusOfClaim(c *corev1.PersistentVolumeClaim) corev1.ClaimResourceStatus {
	return c.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
}

// A claim whose earlier pod a policy keeps from being written joins the Job of others, which is
// confirmed as the claim's own would be.
func TestAWriteThatIsRefusedForOneClaimHoldsUpNoBatch(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "4")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Waits: "ErrImagePull"}
		w.Start()
		w.CreateClaim("bad")
		w.Advance(time.Minute)
		kept := w.CreatedJobs(contract.Provision)[0].Name
		refused := w.refuseWrites(func(verb string, obj fakecluster.Object) bool {
			_, isPod := obj.(*corev1.Pod)
			return isPod && strings.HasPrefix(obj.GetName(), kept) && verb == "patch"
		})
		w.CreateClaim("first")
		fakecluster.Update(w, fakecluster.User, w.Claim("bad"), func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		})
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 30 * time.Second}
		w.Until("the first runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		w.CreateClaim("other")
		w.Until("the other is bound", 3*time.Minute, w.IsBound("other"))
		last := w.CreatedJobs(contract.Provision)
		if uids := jobs.UIDs(last[len(last)-1].Now.(*batchv1.Job)); len(uids) != 2 || *refused == 0 {
			w.T.Errorf("the last Job serves %v, after %d refused writes", uids, *refused)
		}
	})
}
