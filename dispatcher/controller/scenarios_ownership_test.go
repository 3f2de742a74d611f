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
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// A claim's own PV is one that another client made, by hand or for two claims at once.
func TestReclaimByPVOfAClaimThatIsBoundElsewhere(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		fakecluster.Update(w, fakecluster.Admin, claim, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "by-hand" })
		w.Until("a PV was made for nobody, and goes", time.Minute, func() bool { return len(w.Runs) == 2 && w.Empty() })
		w.MustRun("provision", "delete")
		if w.Runs[1].Request.Undo {
			w.T.Error("with a PV it is no undo")
		}
	})
}

// Without the annotation provisioned-by the PV controller looks for a plugin that deletes, and
// fails.
func TestReclaimByPVOfAFailedPV(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
			r.CreateVolume()
			r.WritePV(func(pv *corev1.PersistentVolume) { delete(pv.Annotations, contract.AnnProvisionedBy) })
			return fakecluster.Exit{}
		}))
		w.Start()
		claim := w.provisioned("data")
		fakecluster.Delete(w, fakecluster.User, claim)
		failed := false
		w.Until("nothing is left", time.Minute, func() bool {
			pv := w.PVOf(claim)
			failed = failed || pv != nil && pv.Status.Phase == corev1.VolumeFailed
			return w.Empty()
		})
		if !failed {
			w.T.Error("the PV never failed: the test has lost its story")
		}
		w.MustRun("provision", "delete")
	})
}

func TestReclaimByPVDeletesThatPVByItsUID(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		uid := w.PVOf(claim).UID
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Minute, w.Empty)
		for _, how := range w.deletesOf("persistentvolumes") {
			if how.Preconditions == nil || how.Preconditions.UID == nil || *how.Preconditions.UID != uid {
				w.T.Errorf("the PV was deleted whichever it is: %+v", how.Preconditions)
			}
		}
		if first := w.deletesOf("persistentvolumes")[0]; first.Preconditions.ResourceVersion == nil {
			w.T.Error("the PV was deleted before its volume, whatever had become of it since it was judged")
		}
	})
}

// A Job appears between mark and delete of its revision, and the caches have not heard of it.
func TestRevisionOfItsOwnIsKeptForAJobThatNoCacheShows(t *testing.T) {
	inWorld(t, func(w *world) {
		first, _ := w.twoRevisions()
		old := w.lastVolumeGoes(first)
		w.Server.DelayWatches("jobs", true)
		fakecluster.Create(w, "another leader", &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Name: "expand-by-another-1", Namespace: fakecluster.ConfigNamespace,
			Labels:      map[string]string{config.LabelManagedBy: config.ManagedBy, jobs.LabelVerb: string(contract.Expand)},
			Annotations: map[string]string{contract.AnnRevision: fakecluster.ConfigNamespace + "/" + old.Name},
			Finalizers:  []string{jobs.FinalizerRecord},
		}, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}})
		w.Advance(3 * time.Hour)
		w.mustHaveRevisions(2, "while a Job that no cache shows names one")
	})
}

func TestRevisionOfItsOwnIsNamedByJobAndPV(t *testing.T) {
	inWorld(t, func(w *world) {
		first, second := w.twoRevisions()
		for i, claim := range []*corev1.PersistentVolumeClaim{first, second} {
			revision := w.revisionOf(claim)
			if revision == nil {
				w.T.Fatalf("the PV of %s names no revision that exists", claim.Name)
			}
			job := w.CreatedJobs(contract.Provision)[i].Now.(*batchv1.Job)
			if job.Annotations[contract.AnnRevision] != fakecluster.ConfigNamespace+"/"+revision.Name {
				w.T.Errorf("the Job names %s, its PV %s", job.Annotations[contract.AnnRevision], revision.Name)
			}
		}
	})
}

// Where it is not to be ahead of the PV controller, the class alone makes no claim ours: that
// controller asks for a volume when it has found none.
func TestOursOnlyOnceThePVControllerHasAnnotatedTheClaim(t *testing.T) {
	for _, key := range []string{fakecluster.AnnStorageProvisioner, "volume.beta.kubernetes.io/storage-provisioner"} {
		t.Run(key, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.BinderDown, w.options.AheadOfBinder = true, false
				w.Start()
				claim := w.CreateClaim("data")
				w.Advance(time.Hour)
				w.MustCreateNoJob()
				fakecluster.Update(w, fakecluster.KubeControllerManager, claim, func(c *corev1.PersistentVolumeClaim) { fakecluster.Annotate(c, key, contract.ProvisionerName) })
				w.Until("it is served", time.Minute, func() bool { return w.PVOf(claim) != nil })
			})
		})
	}
}

// The class was another provisioner's when the PV controller asked it.
func TestOursOnlySoAClaimThatAnotherProvisionerWasAskedForIsLeftAlone(t *testing.T) {
	for _, key := range []string{fakecluster.AnnStorageProvisioner, "volume.beta.kubernetes.io/storage-provisioner"} {
		t.Run(key, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.BinderDown = true
				w.Start()
				w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) { fakecluster.Annotate(c, key, "example.com/theirs") })
				w.Advance(time.Hour)
				w.MustCreateNoJob()
			})
		})
	}
}

func TestOursOnlySoAPopulatorsClaimIsLeftAlone(t *testing.T) {
	for kind, ours := range map[string]bool{"Hello": false, "PersistentVolumeClaim": true} {
		inWorld(t, func(w *world) {
			w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
			w.Start()
			w.CreateClaim("source")
			w.Until("the source is bound", time.Minute, w.IsBound("source"))
			w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) {
				ref := &corev1.TypedObjectReference{Kind: kind, Name: "source"}
				if !ours {
					ref.APIGroup = new("example.com")
				}
				c.Spec.DataSourceRef = ref
			})
			w.Advance(time.Hour)
			if got := len(w.CreatedJobs("")) == 2; got != ours {
				w.T.Errorf("the claim with a %s as source was served: %v", kind, got)
			}
		})
	}
}
