package controller_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// A burst that is a little slower than the Jobs, such as one of kube-controller-manager's, made a Job of nearly every claim.
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
