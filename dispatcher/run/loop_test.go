package run

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// Its container has said what became of each claim, and says it once.
func TestThePodOfABatchIsReleasedWhenEachOutcomeIsOnRecord(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Finalizers, pod.Status.Phase = []string{jobs.FinalizerRecord}, corev1.PodFailed
	job := &batchv1.Job{}
	job.Annotations = map[string]string{jobs.AnnUIDs: "uid-1,uid-2"}
	done := func(r *jobs.Record) { r.Recorded = &jobs.Outcome{Verdict: contract.Done} }
	fixture.Record(job, "uid-1", done)
	if IsToBeFreed(job, []*corev1.Pod{pod}) {
		t.Error("it is to be released before the outcome of the second claim is on record")
	}
	fixture.Record(job, "uid-2", done)
	if !IsToBeFreed(job, []*corev1.Pod{pod}) {
		t.Error("it is kept for ever")
	}
	pod.Status.Phase = corev1.PodRunning
	if IsToBeFreed(job, []*corev1.Pod{pod}) {
		t.Error("it is to be released before it has ended")
	}
}
