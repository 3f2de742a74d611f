package controller_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// When the storage is down, each claim leaves a failed Job per attempt.
func TestFailedJobsThatAreKeptAreBoundedPerClass(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Fails(75, "the storage is down")))
		w.Start()
		const claims = 20
		for i := range claims {
			w.CreateClaim(fmt.Sprint("data", i))
		}
		w.Advance(20 * time.Minute)
		kept, all := 0, 0
		for _, job := range fakecluster.List[*batchv1.Job](w.Cluster) {
			all++
			if runs.IsHistory(job) {
				kept++
			}
		}
		// All claims fail at the same moment, and the caches do not show yet which of their Jobs
		// are kept.
		if kept < runs.MaxHistory || kept >= runs.MaxHistory+claims {
			w.T.Errorf("%d failed Jobs are kept for an hour, want %d", kept, runs.MaxHistory)
		}
		if most := kept + 4*claims; all > most {
			w.T.Errorf("%d Jobs exist, want at most %d: the others go after five minutes", all, most)
		}
		if made := len(w.CreatedJobs("provision")); made < 2*runs.MaxHistory {
			w.T.Errorf("%d runs were not enough", made)
		}
	})
}
