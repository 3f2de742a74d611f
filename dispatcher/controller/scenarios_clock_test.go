package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// A leader whose clock was ten minutes ahead has recorded a failure. In a storm on a real cluster
// all claims once waited until then.
func TestARecordOfTheFutureHoldsUpNoRetry(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		p := w.Start()
		w.CreateClaim("data")
		w.Until("the first run is on record", time.Minute, func() bool { return len(w.Runs) == 1 && len(w.HeldRecords()) == 1 })
		w.Advance(500 * time.Millisecond)
		w.End(p)
		job := fakecluster.List[*batchv1.Job](w)[0]
		fakecluster.Update(w, fakecluster.DispatcherName, job, func(job *batchv1.Job) {
			fixture.Record(job, jobs.UIDs(job)[0], func(r *jobs.Record) {
				r.Recorded = &jobs.Outcome{Verdict: contract.TryAgain, Finished: time.Now().Add(10 * time.Minute)}
			})
		})
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.Start()
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
	})
}
