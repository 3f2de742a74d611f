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

// noProgram is what containerd says of a program that does not exist.
const noProgram = `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: exec: "/no": no such file or directory`

// startError leaves the status of a container as containerd does if it could not start it.
func startError(pod *corev1.Pod) {
	t := pod.Status.ContainerStatuses[1].State.Terminated
	t.Reason, t.StartedAt, t.FinishedAt = "StartError", metav1.NewTime(time.Unix(0, 0)), metav1.NewTime(ended)
}

// What was never started has made nothing, whatever else of its pod has run.
func TestARunThatNeverStartedHasMadeNothing(t *testing.T) {
	for name, test := range map[string]struct {
		job  *batchv1.Job
		pods []*corev1.Pod
		want runs.Outcome
	}{
		"rejected by the kubelet": {
			failed(),
			[]*corev1.Pod{exited(1, "", neverRan, because("OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu"))},
			runs.Outcome{Verdict: contract.NotStarted, Reason: "OutOfcpu", Message: "Pod was rejected: Node didn't have enough resource: cpu", Finished: ended},
		},
		"rejected by a kubelet that had just begun": {
			failed(),
			[]*corev1.Pod{exited(1, "", neverRan, because("NodeAffinity", "no"), func(p *corev1.Pod) { p.Status.StartTime = new(metav1.NewTime(ended.Add(-30 * time.Second))) })},
			runs.Outcome{Verdict: contract.NotStarted, Reason: "NodeAffinity", Message: "no", Finished: ended},
		},
		"rejected by a kubelet that was restarted meanwhile": {
			failed(),
			[]*corev1.Pod{exited(1, "", neverRan, because("NodeAffinity", "no"), func(p *corev1.Pod) { p.Status.StartTime = new(metav1.NewTime(ended.Add(-90 * time.Second))) })},
			runs.Outcome{Verdict: contract.Unknown, Reason: "NodeAffinity", Message: "no", Finished: ended},
		},
		"of a lost node's pod a rejection may be no end": {
			failed(),
			[]*corev1.Pod{exited(1, "", neverRan, disrupted, because("OutOfcpu", ""))},
			runs.Outcome{Verdict: contract.Disrupted, Reason: "OutOfcpu", Finished: ended},
		},
		"containerd could not start the container": {
			failed(),
			[]*corev1.Pod{exited(128, noProgram, startError)},
			runs.Outcome{Verdict: contract.NotStarted, Reason: "StartError", Message: noProgram, Finished: ended},
		},
		"another runtime could not": {
			failed(),
			[]*corev1.Pod{exited(127, "no such file", startError, func(p *corev1.Pod) {
				t := p.Status.ContainerStatuses[1].State.Terminated
				t.Reason, t.StartedAt = "ContainerCannotRun", t.FinishedAt
			})},
			runs.Outcome{Verdict: contract.NotStarted, Reason: "ContainerCannotRun", Message: "no such file", Finished: ended},
		},
		"containerd got no answer when it started the container": {
			failed(),
			[]*corev1.Pod{exited(128, "failed to start containerd task \"1\": context deadline exceeded", startError)},
			runs.Outcome{
				Verdict: contract.Unknown, Reason: "StartError",
				Message: "failed to start containerd task \"1\": context deadline exceeded", Finished: ended,
			},
		},
		"a container that started and says StartError": {
			failed(),
			[]*corev1.Pod{exited(128, "", startError, func(p *corev1.Pod) {
				p.Status.ContainerStatuses[1].State.Terminated.StartedAt = metav1.NewTime(ended.Add(-time.Second))
			})},
			runs.Outcome{Verdict: contract.Unknown, Reason: "StartError", Finished: ended},
		},
		"it could not start, and its sidecar runs on": {
			jobThat("", ""),
			[]*corev1.Pod{exited(128, noProgram, startError, beside(corev1.PodRunning))},
			runs.Outcome{Verdict: contract.NotStarted, Reason: "StartError", Message: noProgram, Finished: now},
		},
		"only its sidecar was ever made": {
			failed(),
			[]*corev1.Pod{exited(137, "", waits, because("DeadlineExceeded", "late"), func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "containerd://2" })},
			runs.Outcome{Verdict: contract.NotStarted, Reason: "DeadlineExceeded", Message: "late", Finished: ended},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, runs.Read(test.job, test.pods, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
