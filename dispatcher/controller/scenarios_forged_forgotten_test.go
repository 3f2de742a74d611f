package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// The event of the record says that the volume stays in the storage if the record is given up. The
// forged PV still exists then.
func TestRevisionOfItsOwnIsNotWhatAForgedPVNamesOnceItsRecordIsGivenUp(t *testing.T) {
	for name, before := range map[string]bool{"before its claim is deleted": true, "after its claim was deleted": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var revision string
				revision = w.setUpVictim(fakecluster.Always(spoils(names(&revision))))
				claim := w.CreateClaim("data")
				w.Until("it is bound", time.Minute, w.IsBound("data"))
				w.Advance(2 * time.Minute)
				record := w.HeldRecords()[0]
				w.MustEmitSome("Job/"+record, "VolumeInDoubt", jobs.AnnForget+"="+string(claim.UID), "the volume stays in the storage")
				if !before {
					fakecluster.Delete(w, fakecluster.User, claim)
					w.Advance(time.Hour)
				}
				fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*batchv1.Job](w, fakecluster.ConfigNamespace, record), func(job *batchv1.Job) {
					fakecluster.Annotate(job, jobs.AnnForget, string(claim.UID))
				})
				w.Advance(time.Hour)
				if before {
					fakecluster.Delete(w, fakecluster.User, claim)
				}
				w.Advance(3 * time.Hour)
				w.mustSpareVictim()
				if !w.Storage[string(claim.UID)] {
					w.T.Error("the volume was deleted although the event says that it stays")
				}
			})
		})
	}
}
