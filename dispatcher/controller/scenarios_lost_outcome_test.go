package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// takesOffOutcomes has a webhook take off every outcome that is written on a Job, until it is fixed. What
// else is written with it, such as the release of a record, is stored.
func (w *world) takesOffOutcomes() (fix func()) {
	fixed := false
	w.Server.Refuse(func(_, _ string, obj fakecluster.Object) error {
		job, isJob := obj.(*batchv1.Job)
		if !isJob || fixed {
			return nil
		}
		for _, uid := range jobs.UIDs(job) {
			if jobs.RecordOf(job, uid).Recorded != nil {
				fixture.Record(job, uid, func(r *jobs.Record) { r.Recorded = nil })
			}
		}
		return nil
	})
	return func() { fixed = true }
}

// The Job is held for a claim of the batch whose run has failed.
func TestAnOutcomeThatIsTakenOffUndoesNoRetainedVolume(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Request.Name == "fails" {
				return fakecluster.Exit{Code: contract.ExitTempFail}
			}
			return fakecluster.Works(r)
		}, "max-parallel", "1", "batch-size", "8")
		fix := w.takesOffOutcomes()
		w.Start()
		w.CreateClaim("fails")
		claim := w.CreateClaim("data")
		w.Until("it is bound", time.Hour, w.IsBound("data"))
		w.Advance(time.Minute)
		fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		})
		fakecluster.Delete(w, fakecluster.User, claim)
		fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
		w.Until("the PV no longer exists", time.Hour, func() bool { return w.PVOf(claim) == nil })
		fix()
		w.Advance(6 * time.Hour)
		if !w.Storage[string(claim.UID)] {
			w.T.Error("the volume was deleted that an administrator has kept")
		}
	})
}

// The Job of the delete expires while no dispatcher runs. That of the provision is held.
func TestAnOutcomeThatIsTakenOffCreatesNoPVOfADeletedVolume(t *testing.T) {
	inWorld(t, func(w *world) {
		w.setUpDescribed()
		w.BinderDown = true
		fix := w.takesOffOutcomes()
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the PV is created", time.Hour, func() bool { return w.PVOf(claim) != nil })
		fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
		w.Until("its volume is deleted", time.Hour, func() bool { return !w.Storage[string(claim.UID)] })
		w.Advance(10 * time.Second)
		w.Stop()
		w.BinderDown = false
		w.Advance(time.Hour)
		fix()
		w.Start()
		w.Until("the claim is bound", 6*time.Hour, w.IsBound("data"))
		if !w.Storage[string(claim.UID)] {
			w.T.Error("the claim is bound, and its volume was deleted")
		}
	})
}
