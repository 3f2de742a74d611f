package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

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
			Labels:      map[string]string{config.LabelManagedBy: config.ManagedBy, jobs.LabelVerb: string(contract.Expand)},
			Annotations: map[string]string{contract.AnnRevision: home + "/" + old.Name},
			Finalizers:  []string{jobs.FinalizerRecord},
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
