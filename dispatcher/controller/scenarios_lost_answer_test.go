package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// The API server does not answer to the creation of a batch's Job, and the Job exists. Before the
// cache shows it, it is created again, with another claim, which waits as well. That meets the
// first Job, which does not serve the other claim: that was looked at again minutes later.
func TestAClaimThatJoinsAJobThatExistsIsServed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "9", "batch-size", "2")
		w.options.Workers = 1 // so that a and b share a Job, and c waits
		var b *corev1.PersistentVolumeClaim
		lost := false
		w.Server.LoseAnswer(func(obj fakecluster.Object) bool {
			job, is := obj.(*batchv1.Job)
			if !is || lost || len(jobs.UIDs(job)) < 2 {
				return false
			}
			lost = true
			go w.Server.DelayWatches("pods", true)        // its pod would show that it exists
			go fakecluster.Delete(w, fakecluster.User, b) // so that c is the next that joins a
			return true
		})
		w.Start()
		w.CreateClaim("first")
		w.Until("the first runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		w.Server.DelayWatches("jobs", true)
		w.CreateClaim("a")
		b = w.CreateClaim("b")
		w.CreateClaim("c")
		w.Until("the batch of a and b is there", time.Minute, func() bool { return len(w.CreatedJobs("")) >= 2 })
		w.Advance(2 * time.Second)
		w.Server.DelayWatches("jobs", false)
		w.Server.DelayWatches("pods", false)
		w.Until("a is bound", time.Hour, w.IsBound("a"))
		w.Until("c is bound, and not only when everything is looked at again", time.Minute, w.IsBound("c"))
	})
}
