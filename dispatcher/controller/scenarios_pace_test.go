package controller_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// A burst that is a little slower than the Jobs, such as one of kube-controller-manager's, made a
// Job of nearly every claim.
func TestClaimsThatComeOneByOneShareJobs(t *testing.T) {
	const claims = 60
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "50", "batch-size", "64")
		w.Start()
		for i := range claims {
			w.CreateClaim(fmt.Sprintf("data-%d", i))
			time.Sleep(30 * time.Millisecond)
		}
		w.Until("all are bound", time.Minute, w.AllBound)
		if n := len(w.CreatedJobs("")); n > 6 {
			w.T.Errorf("%d Jobs for %d claims in two seconds: %v", n, claims, w.batches(""))
		}
	})
}

// The writes of a burst's successes took the API server's time from its claims that were not bound
// yet.
func TestASuccessInABatchIsWrittenLater(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "8")
		w.Start()
		w.CreateClaim("data-0")
		w.Until("the first has a Job of its own", time.Minute, func() bool { return len(w.CreatedJobs("")) == 1 })
		for i := range 8 {
			w.CreateClaim(fmt.Sprintf("data-%d", i+1))
		}
		w.Until("all are bound", time.Minute, w.AllBound)
		shown := func() (n int) {
			for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
				if claim.Annotations[contract.AnnResult] == "succeeded" {
					n++
				}
			}
			return n
		}
		time.Sleep(runs.ShownAfter - 5*time.Second)
		if n := shown(); n != 1 {
			w.T.Errorf("%d results are written, want that of the claim that came first and alone", n)
		}
		w.Until("all results are written", 10*time.Second, func() bool { return shown() == 9 })
	})
}
