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
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// The tests named TestRule01 to TestRule14 prove the rules of the design's section 4. Those whose story
// belongs to a theme stand in that theme's file; here are the others.

// heldAt replays which Jobs carried a record, and calls look after every change of a Job.
func (w *world) heldAt(look func(c change, held map[string]bool)) {
	held := map[string]bool{}
	for _, c := range w.server.history() {
		if c.resource != "jobs" {
			continue
		}
		job, exists := c.now.(*batchv1.Job)
		held[c.name] = exists && slices.Contains(job.Finalizers, jobs.FinalizerRecord)
		look(c, held)
	}
}

func TestRule01AnOlderRecordGoesWhenItsSuccessorExistsAndNotBefore(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(halfway(75)))
		w.start()
		w.claim("data")
		w.until("six Jobs were made", 10*time.Minute, func() bool { return len(w.made("")) == 6 })
		made := 0
		w.heldAt(func(c change, held map[string]bool) {
			n := 0
			for _, h := range held {
				if h {
					n++
				}
			}
			if c.verb == "create" {
				made++
			}
			if n < 1 || n > 2 || !held[w.made("")[made-1].name] {
				w.t.Errorf("after %s %s of %d Jobs these are held: %v", c.verb, c.name, made, held)
			}
		})
		w.run(time.Minute)
		if got := w.records(); len(got) != 1 {
			w.t.Errorf("held are %v, want the newest only", got)
		}
	})
}

// A record may be held for long; what it tells, a person may want to read after that.
func TestRule01AFinishedJobIsKeptForItsTTLBeyondItsRecord(t *testing.T) {
	for name, test := range map[string]struct {
		does  func(*run) ending
		keeps time.Duration
	}{
		"done":   {works, 5 * time.Minute},
		"failed": {always(fails(78, "")), time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.goldClass(test.does, "max-attempts", "1")
				w.server.refusing(func(_, verb string, obj object) error {
					if job, ok := obj.(*batchv1.Job); ok && verb == "patch" && !slices.Contains(job.Finalizers, jobs.FinalizerRecord) {
						return apierrors.NewInternalError(errors.New("not now"))
					}
					return nil
				})
				w.start()
				claim := w.claim("data")
				w.until("the run ended", time.Minute, func() bool { return len(w.runs) == 1 })
				w.run(time.Second)
				drop(w, user, claim)
				w.run(2 * time.Hour)
				w.server.refusing(nil)
				w.until("the record is released", 5*time.Minute, func() bool { return len(w.records()) == 0 })
				job := w.made(contract.Provision)[0]
				w.run(test.keeps - 2*time.Second)
				if get[*batchv1.Job](w, home, job.name) == nil {
					w.t.Errorf("the Job was not kept for %s", test.keeps)
				}
				w.run(time.Minute)
				if get[*batchv1.Job](w, home, job.name) != nil {
					w.t.Errorf("the Job was kept for more than %s", test.keeps)
				}
			})
		})
	}
}

// The cache shows a run that failed, and not the one that followed. To undo the first now would be to pull
// the storage from under the second.
func TestRule02AnUndoWaitsForARunThatTheCacheDoesNotShow(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(script(halfway(75), halfway(75)))
		w.start()
		claim := w.claim("data")
		w.until("the first run is shown", time.Minute, func() bool { return w.now("data").Annotations[contract.AnnResult] == "failed" })
		w.server.hold("jobs", true)
		w.server.hold("pods", true)
		w.until("the second runs", time.Minute, func() bool { return len(w.made("")) == 2 && len(w.running()) == 1 })
		drop(w, user, claim)
		w.until("the claim has gone", time.Second, func() bool { return w.now("data") == nil })
		if n := len(w.made(contract.Delete)); n != 0 {
			w.t.Error("an undo was launched beside a run\n" + w.story())
		}
		w.server.hold("jobs", false)
		w.server.hold("pods", false)
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "provision", "delete")
	})
}

// The claim goes while its image runs, another of its name comes, and the cache shows neither.
func TestRule02AResultIsNeverWrittenOnAnotherClaimOfTheName(t *testing.T) {
	inWorld(t, func(w *world) {
		var second *corev1.PersistentVolumeClaim
		w.goldClass(always(func(r *run) ending {
			if second == nil {
				w.server.hold("persistentvolumeclaims", true)
				unfinalize(w, kcm, w.now("data"), protectsClaims)
				drop(w, user, w.now("data"))
				second = w.claim("data")
			}
			return works(r)
		}))
		w.start()
		first := w.claim("data")
		w.until("the result is to be shown", time.Minute, func() bool { return w.applied() > 0 })
		w.run(time.Second)
		if got := w.now("data"); got.UID != second.UID || got.Annotations[contract.AnnResult] != "" {
			w.t.Errorf("the claim %s shows the result of %s", got.UID, first.UID)
		}
		w.server.hold("persistentvolumeclaims", false)
		w.until("the second is bound", time.Minute, w.bound("data"))
	})
}

// applied counts the server-side applies on claims.
func (w *world) applied() int {
	n := 0
	for _, a := range w.dispatcher.client.Actions() {
		if p, ok := a.(clienttesting.PatchActionImpl); ok && p.PatchType == types.ApplyPatchType && p.GetResource().Resource == "persistentvolumeclaims" {
			n++
		}
	}
	return n
}

// A Job of that name which is no record of ours answers nothing, however it ended.
func TestRule03AJobOfTheSameNameIsNoAnswer(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare()
		w.start()
		claim := w.claim("data")
		w.run(time.Second)
		stranger := add(w, admin, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("provision-%s-1", claim.UID), Namespace: home},
			Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{
				Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
			}}},
		})
		w.config("gold", "gold")
		w.run(10 * time.Minute)
		w.mustTell(onData, "Provisioning", 0)
		w.mustTell(onData, "ProvisioningSucceeded", 0)
		if got := w.now("data").Annotations[contract.AnnResult]; got != "" {
			w.t.Errorf("the claim shows %q", got)
		}
		drop(w, admin, stranger)
		w.until("the claim is bound", 2*time.Minute, w.bound("data"))
	})
}

// The first run is finished and kept. The second's Job is another, and its own end counts.
func TestRule03AFinishedJobOfAnEarlierRunIsNoAnswer(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(script(fails(75, "claim: the first"), fails(65, "claim: the second")))
		w.start()
		w.claim("data")
		w.until("the second run is shown", time.Minute, func() bool { return w.now("data").Annotations[contract.AnnMessage] == "the second" })
		w.mustShow(map[string]string{"exit-code": "65", "attempts": "2"})
		if made := w.made(""); len(made) != 2 || made[0].name == made[1].name {
			w.t.Errorf("%d Jobs", len(made))
		}
	})
}

// client-go's default for Jobs would orphan the pods.
func TestRule04AJobIsNeverDeletedWithoutItsPods(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.stuck["data"] = true
		w.start()
		claim := w.claim("data")
		w.until("its Job is there", time.Minute, func() bool { return len(w.made("")) == 1 })
		edit(w, admin, every[*batchv1.Job](w)[0], func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
		drop(w, user, claim)
		w.until("its Job is cancelled", time.Minute, func() bool { return len(w.deletesOf("jobs")) == 1 })
		how := w.deletesOf("jobs")[0]
		if how.PropagationPolicy == nil || *how.PropagationPolicy == metav1.DeletePropagationOrphan {
			w.t.Errorf("a Job is deleted with the propagation %v", how.PropagationPolicy)
		}
		if how.Preconditions == nil || how.Preconditions.UID == nil {
			w.t.Error("another Job of that name could be deleted")
		}
		w.stuck["data"] = false
		w.until("nothing is left", time.Minute, w.empty)
	})
}

// deletesOf are the options with which the dispatcher deleted.
func (w *world) deletesOf(resource string) []metav1.DeleteOptions {
	var out []metav1.DeleteOptions
	for _, a := range w.dispatcher.client.Actions() {
		if d, ok := a.(clienttesting.DeleteActionImpl); ok && d.GetResource().Resource == resource {
			out = append(out, d.DeleteOptions)
		}
	}
	return out
}
