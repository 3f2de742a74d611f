package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

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
