package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// The claim pauses, and a slot of its class is free: it was to wait for that again at once.
func TestAClaimWhoseJobWasStrippedAsksForNoSlotMeanwhile(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		writes := w.stripWrites(func(verb string, obj fakecluster.Object) bool {
			job, isJob := obj.(*batchv1.Job)
			if isJob && verb == "create" {
				job.Finalizers = nil
			}
			return isJob && verb == "create"
		})
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Hour)
		w.mustPace(writes)
		if n := w.reconciles(); n > int64(10**writes) {
			w.T.Errorf("%d reconciles for %d Jobs that were stripped", n, *writes)
		}
	})
}

// The Job that was stored without its finalizer is to be deleted, and the leader dies before: here
// the first delete is refused.
func TestARunWithoutARecordIsNeverConfirmed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		created, deleted := 0, 0
		w.Server.Refuse(func(by, verb string, obj fakecluster.Object) error {
			job, isJob := obj.(*batchv1.Job)
			switch {
			case !isJob || by != fakecluster.DispatcherName:
				return nil
			case verb == "create":
				if created++; created == 1 {
					job.Finalizers = nil
				}
			case verb == "delete":
				if deleted++; deleted == 1 {
					return apierrors.NewForbidden(batchv1.Resource("jobs"), job.Name, nil)
				}
			}
			return nil
		})
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", time.Hour, w.IsBound("data"))
		if created != 2 || deleted != 2 {
			w.T.Errorf("%d Jobs were created, and %d times one was deleted, want 2 each", created, deleted)
		}
	})
}
