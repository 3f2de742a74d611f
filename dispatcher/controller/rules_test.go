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

	"github.com/flex-provisioner/flex-provisioner/dispatcher/contract"
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
		held[c.name] = exists && slices.Contains(job.Finalizers, contract.FinalizerRecord)
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
					if job, ok := obj.(*batchv1.Job); ok && verb == "patch" && !slices.Contains(job.Finalizers, contract.FinalizerRecord) {
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

// A claim's own PV is one that somebody else made, by hand or for two claims at once.
func TestRule08AVolumeWhoseClaimIsBoundElsewhereIsReclaimed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		claim := w.claim("data")
		w.until("the pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
		edit(w, admin, claim, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "by-hand" })
		w.until("a PV was made for nobody, and goes", time.Minute, func() bool { return len(w.runs) == 2 && w.empty() })
		w.mustRun("provision", "delete")
		if w.runs[1].request.Undo {
			w.t.Error("with a PV it is no undo")
		}
	})
}

// Without the annotation provisioned-by the PV controller looks for a plugin that deletes, and fails.
func TestRule08AFailedPVIsReclaimedLikeAReleasedOne(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(func(r *run) ending {
			r.make()
			r.write(func(pv *corev1.PersistentVolume) { delete(pv.Annotations, contract.AnnProvisionedBy) })
			return ending{}
		}))
		w.start()
		claim := w.settled("data")
		drop(w, user, claim)
		failed := false
		w.until("nothing is left", time.Minute, func() bool {
			pv := w.pvOf(claim)
			failed = failed || pv != nil && pv.Status.Phase == corev1.VolumeFailed
			return w.empty()
		})
		if !failed {
			w.t.Error("the PV never failed: the test has lost its story")
		}
		w.mustRun("provision", "delete")
	})
}

func TestRule08ThePVThatGoesIsTheOneWhoseVolumeWasDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		claim := w.settled("data")
		uid := w.pvOf(claim).UID
		drop(w, user, claim)
		w.until("nothing is left", time.Minute, w.empty)
		for _, how := range w.deletesOf("persistentvolumes") {
			if how.Preconditions == nil || how.Preconditions.UID == nil || *how.Preconditions.UID != uid {
				w.t.Errorf("the PV was deleted whichever it is: %+v", how.Preconditions)
			}
		}
	})
}

// A Job appears between mark and delete of its revision, and the caches have not heard of it.
func TestRule09TheJobThatNoCacheShowsKeepsItsRevision(t *testing.T) {
	inWorld(t, func(w *world) {
		first, _ := w.twoRevisions()
		old := w.lastVolumeGoes(first)
		w.server.hold("jobs", true)
		add(w, "another leader", &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Name: "expand-by-another-1", Namespace: home,
			Labels:      map[string]string{contract.LabelManagedBy: contract.ManagedBy, contract.LabelVerb: string(contract.Expand)},
			Annotations: map[string]string{contract.AnnRevision: home + "/" + old.Name},
			Finalizers:  []string{contract.FinalizerRecord},
		}, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}})
		w.run(3 * time.Hour)
		w.mustHaveRevisions(2, "while a Job that no cache shows names one")
	})
}

func TestRule09AJobAndItsPVNameTheRevisionThatMadeThem(t *testing.T) {
	inWorld(t, func(w *world) {
		first, second := w.twoRevisions()
		for i, claim := range []*corev1.PersistentVolumeClaim{first, second} {
			revision := w.revisionOf(claim)
			if revision == nil {
				w.t.Fatalf("the PV of %s names no revision that exists", claim.Name)
			}
			job := w.made(contract.Provision)[i].now.(*batchv1.Job)
			if job.Annotations[contract.AnnRevision] != home+"/"+revision.Name {
				w.t.Errorf("the Job names %s, its PV %s", job.Annotations[contract.AnnRevision], revision.Name)
			}
		}
	})
}

// The class alone makes no claim ours: the PV controller hands it to us when it is our turn.
func TestRule11AClaimIsOursWhenThePVControllerSaysSo(t *testing.T) {
	for _, key := range []string{annAsked, "volume.beta.kubernetes.io/storage-provisioner"} {
		t.Run(key, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.goldClass(works)
				w.noBinder = true
				w.start()
				claim := w.claim("data")
				w.run(time.Hour)
				w.mustServeNobody()
				edit(w, kcm, claim, func(c *corev1.PersistentVolumeClaim) { annotate(c, key, contract.ProvisionerName) })
				w.until("it is served", time.Minute, func() bool { return w.pvOf(claim) != nil })
			})
		})
	}
}

func TestRule12APopulatorsClaimIsLeftAlone(t *testing.T) {
	for kind, ours := range map[string]bool{"Hello": false, "PersistentVolumeClaim": true} {
		inWorld(t, func(w *world) {
			w.goldClass(works, "data-sources", "PersistentVolumeClaim")
			w.start()
			w.claim("source")
			w.until("the source is bound", time.Minute, w.bound("source"))
			w.claim("data", func(c *corev1.PersistentVolumeClaim) {
				ref := &corev1.TypedObjectReference{Kind: kind, Name: "source"}
				if !ours {
					ref.APIGroup = new("example.com")
				}
				c.Spec.DataSourceRef = ref
			})
			w.run(time.Hour)
			if got := len(w.made("")) == 2; got != ours {
				w.t.Errorf("the claim with a %s as source was served: %v", kind, got)
			}
		})
	}
}
