package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// The API server does not answer to the creation of a batch's Job, and the Job exists. Before the
// cache shows it, it is created again, with another claim, which waits as well. That meets the
// first Job, which does not serve the other claim: nothing ever looked at that again.
func TestAClaimThatJoinsAJobThatExistsIsServed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "2")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Second}
		lost := false
		w.Server.LoseAnswer(func(obj fakecluster.Object) bool {
			job, is := obj.(*batchv1.Job)
			if !is || lost || len(jobs.UIDs(job)) < 2 {
				return false
			}
			lost = true
			return true
		})
		w.Start()
		w.CreateClaim("first")
		w.Until("the first runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		w.CreateClaim("a")
		b := w.CreateClaim("b")
		w.CreateClaim("c")
		w.Advance(time.Second)
		w.Server.DelayWatches("jobs", true)
		w.Until("the batch of a and b is there", time.Minute, func() bool { return len(w.CreatedJobs("")) == 2 })
		w.Server.DelayWatches("pods", true)        // its pod would show that it exists
		fakecluster.Delete(w, fakecluster.User, b) // so that c is the next that joins a
		w.Advance(2 * time.Second)
		w.Server.DelayWatches("jobs", false)
		w.Server.DelayWatches("pods", false)
		w.Until("a is bound", time.Hour, w.IsBound("a"))
		w.Until("c is bound", time.Hour, w.IsBound("c"))
	})
}
