package controller_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

func TestOfAClassWithRetainAndThenDeleteTheVolumeKeepsItsOwnPolicy(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		first := w.provisioned("first")
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*storagev1.StorageClass](w, "", "gold"))
		w.CreateClass("gold", corev1.PersistentVolumeReclaimRetain)
		second := w.provisioned("second")
		fakecluster.Delete(w, fakecluster.User, first)
		fakecluster.Delete(w, fakecluster.User, second)
		w.Advance(time.Hour)
		if w.Storage[string(first.UID)] || !w.Storage[string(second.UID)] {
			w.T.Errorf("left are %v, want the second's only", w.Storage)
		}
	})
}

// A cluster may have two dispatchers, each with a provisioner of its own. A PV of the other's is
// neither grown nor deleted, nor is anything told of it.
func TestOursOnlySoAnotherProvisionersVolumeIsLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) {
			pv.Annotations[contract.AnnProvisionedBy] = "example.com/another"
		})
		w.requestSize("2Gi")
		w.Advance(time.Minute)
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Advance(time.Hour)
		w.MustRun("provision")
		pv := w.PVOf(claim)
		if pv == nil || !slices.Contains(pv.Finalizers, contract.FinalizerStorage) {
			w.T.Fatalf("the PV is %+v", pv)
		}
		for _, about := range []string{"PersistentVolumeClaim/data", "PersistentVolume/" + pv.Name} {
			for _, e := range w.Events.About(about, "") {
				if e.Type == corev1.EventTypeWarning {
					w.T.Errorf("told: %+v", e)
				}
			}
		}
	})
}

// Nor does it let a PV go that the other has not seen yet: its own dispatcher would undo the
// volume.
func TestOursOnlySoAnotherProvisionersPVKeepsItsFinalizer(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(spoils(func(pv *corev1.PersistentVolume) {
			tooSmall(pv)
			pv.Annotations[contract.AnnProvisionedBy] = "example.com/another"
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		})))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("its PV is written", time.Hour, func() bool { return w.PVOf(claim) != nil })
		w.Advance(time.Minute)
		if !w.heldByUs(claim) {
			w.T.Error("the PV of another provisioner was let go")
		}
	})
}

// The event about a PV without a claimRef says that with the policy Retain it can be deleted, and
// its volume is kept. Its run had failed, since the PV proves nothing.
func TestAVolumeIsKeptWhoseUnprovenPVWasRetainedAndDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
			r.CreateVolume()
			r.WritePV(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil; pv.Spec.AccessModes = nil })
			return fakecluster.Exit{}
		}))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("its PV is in doubt", time.Minute, func() bool { return w.Events.About(aboutClaim("data"), "VolumeInDoubt") != nil })
		pv := w.PVOf(claim)
		w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
		fakecluster.Delete(w, fakecluster.User, claim)
		fakecluster.Delete(w, fakecluster.Admin, pv)
		w.Until("the PV does not exist any more", time.Minute, func() bool { return fakecluster.Get[*corev1.PersistentVolume](w, "", pv.Name) == nil })
		w.Advance(time.Hour)
		if !w.Storage[string(claim.UID)] {
			w.T.Errorf("the volume was deleted")
		}
		w.MustRun("provision")
		w.mustTell(w.jobName(0), "LeftBehind", "reclaim policy of its PersistentVolume is Retain")
	})
}

// An administrator sets a PV in use to Retain and, when its claim is deleted, deletes it to keep
// the volume. The run that wrote the PV was killed. It is on record as a failure once the API
// server accepts writes on Jobs again, and its volume was once undone then.
func TestAVolumeIsKeptWhosePVWasRetainedAndDeletedBeforeItsRunWasOnRecord(t *testing.T) {
	inWorld(t, func(w *world) {
		refused := w.refuseJobs()
		w.SetUpGold(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
			r.CreateVolume()
			r.WritePV()
			*refused = true
			return fakecluster.Exit{Code: 137}
		}))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Advance(5 * time.Minute)
		w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
		w.Advance(5 * time.Minute)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("the PV is released", time.Minute, func() bool { return w.PVOf(claim).Status.Phase == corev1.VolumeReleased })
		fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
		w.Advance(5 * time.Minute)
		*refused = false
		w.mustKeepVolume(claim)
		w.MustRun("provision")
		if w.PVOf(claim) != nil || len(w.HeldRecords()) > 0 {
			w.T.Errorf("left: PV %v, records %v", w.PVOf(claim), w.HeldRecords())
		}
	})
}

// refuseJobs lets the API server refuse what dispatchers write on Jobs, while the flag is set that
// it returns.
func (w *world) refuseJobs() *bool {
	refused := new(bool)
	w.Server.Refuse(func(client, _ string, obj fakecluster.Object) error {
		if _, isJob := obj.(*batchv1.Job); isJob && *refused && client == fakecluster.DispatcherName {
			return apierrors.NewForbidden(batchv1.Resource("jobs"), "", nil)
		}
		return nil
	})
	return refused
}

// The same of a PV that its image has written under a wrong name. No note of it can be written on
// the Job of its run, so its finalizer stays as well.
func TestAMisnamedPVStaysUntilItIsNotedOnTheRecord(t *testing.T) {
	inWorld(t, func(w *world) {
		refused := w.refuseJobs()
		w.SetUpGold(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
			r.CreateVolume()
			r.WritePV(func(pv *corev1.PersistentVolume) { pv.Name = "mine" })
			*refused = true
			return fakecluster.Exit{Code: 75}
		}))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Advance(5 * time.Minute)
		mine := func() *corev1.PersistentVolume { return fakecluster.Get[*corev1.PersistentVolume](w, "", "mine") }
		fakecluster.Update(w, fakecluster.Admin, mine(), func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		})
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Advance(5 * time.Minute)
		fakecluster.Delete(w, fakecluster.Admin, mine())
		w.Advance(5 * time.Minute)
		*refused = false
		w.mustKeepVolume(claim)
		if pv := mine(); pv != nil {
			w.T.Errorf("the PV stays: %v", pv.Finalizers)
		}
	})
}

// A second run has written the PV, has not ended, and is not in the caches yet, which show the
// first one with its record released. The dispatcher's memory of what it has launched is a minute
// long.
func TestARetainedPVStaysWhileTheWatchOfJobsIsBehind(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(nil)
		runs := 0
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Takes: 150 * time.Second, Lingers: time.Minute, Does: fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
			runs++
			r.CreateVolume()
			r.WritePV(func(pv *corev1.PersistentVolume) {
				pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
				if runs == 1 {
					tooSmall(pv)
				}
			})
			if runs == 2 {
				return fakecluster.Exit{Code: 137}
			}
			return fakecluster.Exit{}
		})}
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the PV of the first run is let go", 10*time.Minute, func() bool { return w.PVOf(claim) != nil && !w.heldByUs(claim) })
		w.Advance(time.Second)
		w.Server.DelayWatches("jobs", true)
		fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
		w.Until("the second run is at work", 5*time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		w.Advance(70 * time.Second)
		w.CreateClaim("other") // what was launched before is forgotten when another is
		w.Until("the claim is bound", 5*time.Minute, w.IsBound("data"))
		w.Advance(2 * time.Second)
		if !w.heldByUs(claim) {
			w.T.Error("the PV was let go")
		}
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Until("the PV is released", time.Minute, func() bool { return w.PVOf(claim).Status.Phase == corev1.VolumeReleased })
		fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
		w.Advance(5 * time.Second)
		w.Server.DelayWatches("jobs", false)
		w.mustKeepVolume(claim)
	})
}
