package runs_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// beside makes the first container of a pod one that runs on, and the pod one of this phase.
func beside(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase, pod.Status.ContainerStatuses[0].State = phase, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	}
}

// endedAfter makes a pod's container one that ended a time after its pod's start.
func endedAfter(took time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		start := ended.Add(-time.Hour)
		pod.Status.StartTime, pod.Status.ContainerStatuses[1].State.Terminated.FinishedAt = new(metav1.NewTime(start)), metav1.NewTime(start.Add(took))
	}
}

// withDeadline gives the pods of a Job a deadline of ten minutes.
func withDeadline(job *batchv1.Job) *batchv1.Job {
	job.Spec.Template.Spec.ActiveDeadlineSeconds = new(int64(600))
	return job
}

// What becomes of its sidecars is no part of what a run has done.
func TestTheContainersOwnEndIsTheVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		job  *batchv1.Job
		pods []*corev1.Pod
		want runs.Outcome
	}{
		"a refusal, and its sidecar runs on": {
			jobThat("", ""),
			[]*corev1.Pod{exited(65, "claim: no", beside(corev1.PodRunning))},
			runs.Outcome{Verdict: contract.BadRequest, ExitCode: new(int32(65)), Message: "claim: no", Finished: now},
		},
		"a refusal, and its sidecar was ended": {
			withDeadline(failed()),
			[]*corev1.Pod{exited(65, "claim: no", endedAfter(2*time.Minute), because("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"))},
			runs.Outcome{Verdict: contract.BadRequest, ExitCode: new(int32(65)), Message: "claim: no", Finished: ended},
		},
		"a refusal at the deadline is none": {
			withDeadline(failed()),
			[]*corev1.Pod{exited(65, "", endedAfter(10*time.Minute), because("DeadlineExceeded", "late"))},
			runs.Outcome{Verdict: contract.TryAgain, ExitCode: new(int32(65)), Reason: "DeadlineExceeded", Message: "late", Finished: ended},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, runs.Read(test.job, test.pods, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
