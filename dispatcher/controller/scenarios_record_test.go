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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// heldAt replays which Jobs carried a record, and calls look after every change of a Job.
func (w *world) heldAt(look func(c fakecluster.Change, held map[string]bool)) {
	held := map[string]bool{}
	for _, c := range w.Server.History() {
		if c.Resource != "jobs" {
			continue
		}
		job, exists := c.Now.(*batchv1.Job)
		held[c.Name] = exists && slices.Contains(job.Finalizers, jobs.FinalizerRecord)
		look(c, held)
	}
}

func TestRecordBeforeStorageIsReleasedWhenItsSuccessorExists(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		w.Start()
		w.CreateClaim("data")
		w.Until("six Jobs were made", 10*time.Minute, func() bool { return len(w.CreatedJobs("")) == 6 })
		made := 0
		w.heldAt(func(c fakecluster.Change, held map[string]bool) {
			n := 0
			for _, h := range held {
				if h {
					n++
				}
			}
			if c.Verb == "create" {
				made++
			}
			if n < 1 || n > 2 || !held[w.CreatedJobs("")[made-1].Name] {
				w.T.Errorf("after %s %s of %d Jobs these are held: %v", c.Verb, c.Name, made, held)
			}
		})
		w.Advance(time.Minute)
		if got := w.HeldRecords(); len(got) != 1 {
			w.T.Errorf("held are %v, want the newest only", got)
		}
	})
}

// A record may be held for long; what it tells, a person may want to read after that.
func TestRecordBeforeStorageReleasedLeavesTheJobItsTTL(t *testing.T) {
	for name, test := range map[string]struct {
		does  func(*fakecluster.Run) fakecluster.Exit
		keeps time.Duration
	}{
		"done":   {fakecluster.Works, 5 * time.Minute},
		"failed": {fakecluster.Always(fakecluster.Fails(78, "")), time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(test.does, "max-attempts", "1")
				w.Server.Refuse(func(_, verb string, obj fakecluster.Object) error {
					if job, ok := obj.(*batchv1.Job); ok && verb == "patch" && !slices.Contains(job.Finalizers, jobs.FinalizerRecord) {
						return apierrors.NewInternalError(errors.New("not now"))
					}
					return nil
				})
				w.Start()
				claim := w.CreateClaim("data")
				w.Until("the run ended", time.Minute, func() bool { return len(w.Runs) == 1 })
				w.Advance(time.Second)
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Advance(2 * time.Hour)
				w.Server.Refuse(nil)
				w.Until("the record is released", 5*time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
				job := w.CreatedJobs(contract.Provision)[0]
				w.Advance(test.keeps - 2*time.Second)
				if fakecluster.Get[*batchv1.Job](w, fakecluster.ConfigNamespace, job.Name) == nil {
					w.T.Errorf("the Job was not kept for %s", test.keeps)
				}
				w.Advance(time.Minute)
				if fakecluster.Get[*batchv1.Job](w, fakecluster.ConfigNamespace, job.Name) != nil {
					w.T.Errorf("the Job was kept for more than %s", test.keeps)
				}
			})
		})
	}
}

// The cache shows a run that failed, and not the one that followed. That one cannot start without
// being shown, and the first is undone when it has been cancelled.
func TestOneRunPerClaimAnUndoWaitsForARunThatTheCacheDoesNotShow(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Script(fakecluster.Halfway(75), fakecluster.Halfway(75)))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the first run is shown", time.Minute, func() bool { return w.Claim("data").Annotations[contract.AnnResult] == "failed" })
		w.Server.DelayWatches("jobs", true)
		w.Server.DelayWatches("pods", true)
		w.Until("the second is launched", time.Minute, func() bool { return len(w.CreatedJobs("")) == 2 })
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("the claim has gone", time.Second, func() bool { return w.Claim("data") == nil })
		if n := len(w.CreatedJobs(contract.Delete)); n != 0 {
			w.T.Error("an undo was launched beside a run\n" + w.Story())
		}
		w.Server.DelayWatches("jobs", false)
		w.Server.DelayWatches("pods", false)
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete")
	})
}

// The claim goes while its image runs, another of its name comes, and the cache shows neither.
func TestOwnAnswerIsNeverWrittenOnAnotherClaimOfTheName(t *testing.T) {
	inWorld(t, func(w *world) {
		var second *corev1.PersistentVolumeClaim
		w.SetUpGold(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
			if second == nil {
				w.Server.DelayWatches("persistentvolumeclaims", true)
				fakecluster.RemoveFinalizer(w, fakecluster.KubeControllerManager, w.Claim("data"), fakecluster.FinalizerPVCProtection)
				fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
				second = w.CreateClaim("data")
			}
			if len(w.Runs) == 0 {
				return fakecluster.Exit{Code: 75, Message: "claim: not yet"}
			}
			return fakecluster.Works(r)
		}))
		w.Start()
		first := w.CreateClaim("data")
		w.Until("the run has ended", time.Minute, func() bool { return len(w.Runs) == 1 })
		w.Advance(5 * time.Second)
		if got := w.Claim("data"); got.UID != second.UID || got.Annotations[contract.AnnResult] != "" {
			w.T.Errorf("the claim %s shows the result of %s", got.UID, first.UID)
		}
		w.Server.DelayWatches("persistentvolumeclaims", false)
		w.Until("the second is bound", time.Minute, w.IsBound("data"))
	})
}

// A Job of that name which is no record of ours answers nothing, however it ended.
func TestOwnAnswerIsNotAForeignJobOfTheSameName(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare()
		w.Start()
		claim := w.CreateClaim("data")
		w.Advance(time.Second)
		foreign := fakecluster.Create(w, fakecluster.Admin, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("provision-%s-1", claim.UID), Namespace: fakecluster.ConfigNamespace},
			Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{
				Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
			}}},
		})
		w.CreateConfig("gold", "gold")
		w.Advance(10 * time.Minute)
		w.MustEmit(onData, "Provisioning", 0)
		w.MustEmit(onData, "ProvisioningSucceeded", 0)
		if got := w.Claim("data").Annotations[contract.AnnResult]; got != "" {
			w.T.Errorf("the claim shows %q", got)
		}
		fakecluster.Delete(w, fakecluster.Admin, foreign)
		w.Until("the claim is bound", 2*time.Minute, w.IsBound("data"))
	})
}

// The first run is finished and kept. The second's Job is another, and its own end counts.
func TestOwnAnswerIsNotAnEarlierRunsJob(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Script(fakecluster.Fails(75, "claim: the first"), fakecluster.Fails(65, "claim: the second")))
		w.Start()
		w.CreateClaim("data")
		w.Until("the second run is shown", time.Minute, func() bool { return w.Claim("data").Annotations[contract.AnnMessage] == "the second" })
		w.MustShow(map[string]string{"exit-code": "65", "attempts": "2"})
		if made := w.CreatedJobs(""); len(made) != 2 || made[0].Name == made[1].Name {
			w.T.Errorf("%d Jobs", len(made))
		}
	})
}

// client-go's default for Jobs would orphan the pods. Where they are deleted after their Job, a
// gated one stays until the Job's deadline.
func TestOnePodPerJobIsDeletedWithItsJob(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.NoPodFor["data"] = true
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("its Job is there", time.Minute, func() bool { return len(w.CreatedJobs("")) == 1 })
		fakecluster.Update(w, fakecluster.Admin, fakecluster.List[*batchv1.Job](w)[0], func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("its Job is cancelled", time.Minute, func() bool { return len(w.deletesOf("jobs")) == 1 })
		how := w.deletesOf("jobs")[0]
		if how.PropagationPolicy == nil || *how.PropagationPolicy != metav1.DeletePropagationForeground {
			w.T.Errorf("a Job is deleted with the propagation %v", how.PropagationPolicy)
		}
		if how.Preconditions == nil || how.Preconditions.UID == nil {
			w.T.Error("another Job of that name could be deleted")
		}
		w.NoPodFor["data"] = false
		w.Until("nothing is left", time.Minute, w.Empty)
	})
}

// deletesOf are the options with which the dispatcher deleted.
func (w *world) deletesOf(resource string) []metav1.DeleteOptions {
	var out []metav1.DeleteOptions
	for _, a := range w.Dispatcher().Requests() {
		if d, ok := a.(clienttesting.DeleteActionImpl); ok && d.GetResource().Resource == resource {
			out = append(out, d.DeleteOptions)
		}
	}
	return out
}

// Found by the simulation: nothing but the pod was left of the claim, so that a new leader never
// looked at it.
func TestANewLeaderReleasesThePodOfAJobThatNoLongerExists(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Server.Refuse(func(by, _ string, obj fakecluster.Object) error {
			if pod, isPod := obj.(*corev1.Pod); isPod && by == fakecluster.DispatcherName && pod.Status.Phase == corev1.PodSucceeded {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod.Name, nil)
			}
			return nil
		})
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Until("the Jobs have expired", 3*time.Hour, func() bool { return len(fakecluster.List[*batchv1.Job](w)) == 0 })
		if len(fakecluster.List[*corev1.Pod](w)) == 0 {
			t.Fatal("no pod is held")
		}
		w.Server.Refuse(nil)
		w.Stop()
		w.Start()
		w.Until("no pod is held", time.Minute, func() bool { return len(fakecluster.List[*corev1.Pod](w)) == 0 })
	})
}
