//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// A namespace with many claims does not hold up another's first, and the class never runs more Jobs than
// its max-parallel.
func TestItem11NamespacesTakeTurns(t *testing.T) {
	t.Parallel()
	crowd, other := newWorld(t, "crowd"), newWorld(t, "single")
	const many, most = 16, 2
	class, _ := crowd.service(scripted(deletes+offer, map[string]string{"max-parallel": fmt.Sprint(most)}))
	for i := range many {
		crowd.claim(class, fmt.Sprintf("data-%02d", i))
	}
	crowd.eventually(toBind, "the crowd to be served", func(ctx context.Context) error {
		if pending := crowd.pending(); pending == many {
			return fmt.Errorf("%d claims of %d are pending", pending, many)
		}
		return crowd.atMost(most)
	})
	single := other.claim(class, "data")
	other.eventually(toBind, "the other namespace's claim to be bound", func(ctx context.Context) error {
		if err := crowd.atMost(most, single); err != nil {
			t.Error(err)
		}
		return succeeded(ctx, single)
	})
	if left := crowd.pending(); left < many/2 {
		t.Errorf("when the other namespace's only claim was bound, no more than %d of the crowd's %d were waiting", left, many)
	}
	job := other.onlyJob(single, "provision")
	if before := crowd.launchedBetween(single.CreationTimestamp.Time, job.CreationTimestamp.Time); before > 2*most {
		t.Errorf("%d Jobs of the crowd were launched before the other namespace's first", before)
	}
	crowd.allClaims(3*time.Minute, "to be bound", func(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
		if err := crowd.atMost(most, single); err != nil {
			t.Error(err)
		}
		return succeeded(ctx, claim)
	})
}

// pending counts the test's claims that are not bound yet.
func (w *world) pending() int {
	w.t.Helper()
	list, err := kube.CoreV1().PersistentVolumeClaims(w.ns).List(w.ctx(), all)
	w.must(err, "look at the claims")
	pending := 0
	for _, claim := range list.Items {
		if claim.Status.Phase == corev1.ClaimPending {
			pending++
		}
	}
	return pending
}

// jobsOfClaims are those of the test's claims, and of more.
func (w *world) jobsOfClaims(more ...*corev1.PersistentVolumeClaim) []batchv1.Job {
	w.t.Helper()
	list, err := kube.BatchV1().Jobs(ownNamespace).List(w.ctx(), labelled("flex-provisioner.io/verb=provision"))
	w.must(err, "look at the Jobs")
	mine := map[string]bool{}
	for _, claim := range append(more, w.claims...) {
		mine[string(claim.UID)] = true
	}
	var jobs []batchv1.Job
	for _, job := range list.Items {
		if mine[job.Labels["flex-provisioner.io/claim-uid"]] {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// atMost: no more Jobs of the test's claims run at a time. One that does not start within 10 s gives its
// slot to another, as it may on a busy machine.
func (w *world) atMost(most int, more ...*corev1.PersistentVolumeClaim) error {
	w.t.Helper()
	var running []batchv1.Job
	for _, job := range w.jobsOfClaims(more...) {
		if ended(job) == nil && time.Since(job.CreationTimestamp.Time) < 9*time.Second {
			running = append(running, job)
		}
	}
	if len(running) > most {
		return fmt.Errorf("more than max-parallel=%d Jobs run: %v", most, names(running))
	}
	return nil
}

// launchedBetween counts the Jobs of the test's claims that were created after one time and before another.
func (w *world) launchedBetween(from, to time.Time) int {
	w.t.Helper()
	count := 0
	for _, job := range w.jobsOfClaims() {
		if at := job.CreationTimestamp.Time; at.After(from) && at.Before(to) {
			count++
		}
	}
	return count
}
