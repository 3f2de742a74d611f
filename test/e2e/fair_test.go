//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// A namespace with many claims does not delay the first claim of another, and no more pods of the class are at work than
// its max-parallel.
func TestNamespacesShareSlotsFairly(t *testing.T) {
	t.Parallel()
	crowd, other := newWorld(t, "crowd"), newWorld(t, "single")
	const many, most = 24, 2
	class, _ := crowd.service(scripted(deletes+offer, map[string]string{"max-parallel": fmt.Sprint(most)}))
	for i := range many {
		crowd.claim(class, fmt.Sprintf("data-%02d", i))
	}
	crowd.eventually(toBind, "the crowd to be served", func(ctx context.Context) error {
		switch pending, err := crowd.pending(ctx); {
		case err != nil:
			return err
		case pending == many:
			return fmt.Errorf("all %d claims are pending", pending)
		}
		return crowd.atMost(ctx, most)
	})
	single := other.claim(class, "data")
	other.eventually(toBind, "the other namespace's claim to be bound", func(ctx context.Context) error {
		if err := crowd.atMost(ctx, most, single); err != nil {
			t.Error(err)
		}
		return succeeded(ctx, single)
	})
	left, err := crowd.pending(crowd.ctx())
	crowd.must(err, "look at the crowd")
	if left < many/2 {
		t.Errorf("when the other namespace's only claim was bound, no more than %d of the crowd's %d were waiting", left, many)
	}
	before, err := crowd.launchedBetween(single.CreationTimestamp.Time, other.onlyJob(single, "provision").CreationTimestamp.Time)
	crowd.must(err, "look at the crowd's Jobs")
	if before > 2*most {
		t.Errorf("%d Jobs of the crowd were launched before the other namespace's first", before)
	}
	crowd.allClaims(3*time.Minute, "to be bound", func(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
		if err := crowd.atMost(ctx, most, single); err != nil {
			t.Error(err)
		}
		return succeeded(ctx, claim)
	})
}

// pending counts the test's claims that are not bound yet.
func (w *world) pending(ctx context.Context) (int, error) {
	list, err := kube.CoreV1().PersistentVolumeClaims(w.ns).List(ctx, all)
	pending := 0
	for _, claim := range list.Items {
		if claim.Status.Phase == corev1.ClaimPending {
			pending++
		}
	}
	return pending, err
}

// jobsOfClaims returns the Jobs of the test's claims, and of more.
func (w *world) jobsOfClaims(ctx context.Context, more ...*corev1.PersistentVolumeClaim) ([]batchv1.Job, error) {
	mine := w.uids(more...)
	list, err := kube.BatchV1().Jobs(ownNamespace).List(ctx, labelled("flex-provisioner.io/verb=provision"))
	return slices.DeleteFunc(list.Items, func(job batchv1.Job) bool { return !mine[job.Labels["flex-provisioner.io/claim-uid"]] }), err
}

// uids are those of the test's claims, and of more.
func (w *world) uids(more ...*corev1.PersistentVolumeClaim) map[string]bool {
	out := map[string]bool{}
	for _, claim := range append(more, w.claims...) {
		out[string(claim.UID)] = true
	}
	return out
}

// atMost checks that no more pods of the test's claims are at work at a time: past their gate, and their containers have not ended.
func (w *world) atMost(ctx context.Context, most int, more ...*corev1.PersistentVolumeClaim) error {
	mine := w.uids(more...)
	list, err := kube.CoreV1().Pods(ownNamespace).List(ctx, labelled("flex-provisioner.io/verb=provision"))
	var working []string
	for _, pod := range list.Items {
		over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed ||
			len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Terminated != nil
		if mine[pod.Labels["flex-provisioner.io/claim-uid"]] && len(pod.Spec.SchedulingGates) == 0 && !over {
			working = append(working, pod.Name)
		}
	}
	if err == nil && len(working) > most {
		err = fmt.Errorf("more than max-parallel=%d pods are at work: %v", most, working)
	}
	return err
}

// launchedBetween counts the Jobs of the test's claims that were created after one time and before another.
func (w *world) launchedBetween(from, to time.Time) (int, error) {
	jobs, err := w.jobsOfClaims(w.ctx())
	count := 0
	for _, job := range jobs {
		if at := job.CreationTimestamp.Time; at.After(from) && at.Before(to) {
			count++
		}
	}
	return count, err
}
