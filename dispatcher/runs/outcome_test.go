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

var (
	ended = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	now   = ended.Add(time.Hour)
)

func TestEveryExitCodeHasItsVerdict(t *testing.T) {
	for code, want := range map[int32]contract.Verdict{
		0: contract.Done, 64: contract.BadConfig, 78: contract.BadConfig, 65: contract.BadRequest, 73: contract.NoCapacity,
		77: contract.NoCredentials, 69: contract.TryAgain, 75: contract.TryAgain, 1: contract.TryAgain, 2: contract.TryAgain,
		66: contract.TryAgain, 127: contract.TryAgain, 137: contract.TryAgain, 255: contract.TryAgain,
	} {
		job := failed()
		if code == 0 {
			job = jobThat(batchv1.JobComplete, "CompletionsReached")
		}
		got := runs.Read(job, []*corev1.Pod{exited(code, "words")}, now)
		if diff := cmp.Diff(runs.Outcome{Verdict: want, ExitCode: new(code), Message: "words", Finished: ended}, got); diff != "" {
			t.Errorf("exit code %d (-want +got):\n%s", code, diff)
		}
	}
}

func TestFailuresHaveTheirVerdict(t *testing.T) {
	deadline := func() *batchv1.Job { return jobThat(batchv1.JobFailed, "DeadlineExceeded") }
	complete := func() *batchv1.Job { return jobThat(batchv1.JobComplete, "CompletionsReached") }
	const another = "the Job is Complete, but not by the pod of this run"
	for name, test := range map[string]struct {
		job  *batchv1.Job
		pods []*corev1.Pod
		want runs.Outcome
	}{
		"out of memory counts": {
			failed(),
			[]*corev1.Pod{exited(137, "", oom)},
			runs.Outcome{Verdict: contract.TryAgain, ExitCode: new(int32(137)), Reason: "OOMKilled", Finished: ended},
		},
		"a child out of memory, 65 by the image": {
			failed(),
			[]*corev1.Pod{exited(65, "claim: no", oom)},
			runs.Outcome{Verdict: contract.TryAgain, ExitCode: new(int32(65)), Reason: "OOMKilled", Message: "claim: no", Finished: ended},
		},
		"done, a child out of memory, the Job not yet Complete": {
			jobOf(contract.Delete, false),
			[]*corev1.Pod{exited(0, "", oom)},
			runs.Outcome{Verdict: contract.Done, ExitCode: new(int32(0)), Finished: now},
		},
		"evicted by node pressure is nobody's fault": {
			failed(),
			[]*corev1.Pod{exited(137, "", disrupted, because("Evicted", "The node was low on resource: memory."))},
			runs.Outcome{
				Verdict: contract.Disrupted, ExitCode: new(int32(137)), Reason: "Evicted",
				Message: "The node was low on resource: memory.", Finished: ended,
			},
		},
		"evicted for its own use counts": {
			failed(),
			[]*corev1.Pod{exited(137, "", because("Evicted", "Usage of EmptyDir volume \"tmp\" exceeds the limit \"64Mi\"."))},
			runs.Outcome{
				Verdict: contract.TryAgain, ExitCode: new(int32(137)), Reason: "Evicted",
				Message: "Usage of EmptyDir volume \"tmp\" exceeds the limit \"64Mi\".", Finished: ended,
			},
		},
		"evicted for its own use before it ran counts": {
			failed(),
			[]*corev1.Pod{exited(1, "", waits, because("Evicted", "Pod ephemeral local storage usage exceeds"))},
			runs.Outcome{Verdict: contract.TryAgain, Reason: "Evicted", Message: "Pod ephemeral local storage usage exceeds", Finished: ended},
		},
		"drained, preempted or tainted is nobody's fault": {
			failed(),
			[]*corev1.Pod{exited(143, "half done", disrupted)},
			runs.Outcome{Verdict: contract.Disrupted, ExitCode: new(int32(143)), Message: "half done", Finished: ended},
		},
		"containerd does not know how it ended": {
			failed(),
			[]*corev1.Pod{exited(255, "half done", unknownBy("Unknown"))},
			runs.Outcome{
				Verdict: contract.Unknown, Reason: "Unknown", Message: "half done", Finished: ended,
			},
		},
		"the kubelet does not know how it ended": {
			failed(),
			[]*corev1.Pod{exited(137, "", unknownBy("ContainerStatusUnknown"))},
			runs.Outcome{
				Verdict: contract.Unknown, Reason: "ContainerStatusUnknown", Finished: ended,
			},
		},
		"it was not yet said that the kubelet does not know": {
			failed(),
			[]*corev1.Pod{exited(137, "", waits, func(pod *corev1.Pod) {
				pod.Status.ContainerStatuses[1].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
					ExitCode: 137, Reason: "ContainerStatusUnknown",
				}
			})},
			runs.Outcome{
				Verdict: contract.Unknown, Reason: "ContainerStatusUnknown", Finished: ended,
			},
		},
		"nobody knows how an init container ended": {
			failed(),
			[]*corev1.Pod{exited(1, "", waits, func(pod *corev1.Pod) {
				unknown := corev1.ContainerStateTerminated{ExitCode: 255, Reason: "Unknown"}
				pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
					Name: "init", State: corev1.ContainerState{Terminated: &unknown},
				}}
			})},
			runs.Outcome{Verdict: contract.Unknown, Reason: "Unknown", Finished: ended},
		},
		"not known, and its node was away until the Job's deadline": {
			deadline(),
			[]*corev1.Pod{exited(255, "", unknownBy("Unknown"), deletedByHand)},
			runs.Outcome{Verdict: contract.Unknown, Reason: "Unknown", Finished: ended},
		},
		"not known, and its node was away until the pod's deadline": {
			failed(),
			[]*corev1.Pod{
				exited(255, "", unknownBy("Unknown"), because("DeadlineExceeded", "late")),
			},
			runs.Outcome{
				Verdict: contract.Unknown, Reason: "Unknown", Message: "late", Finished: ended,
			},
		},
		"not known, and a sidecar runs on": {
			jobThat("", ""),
			[]*corev1.Pod{exited(255, "", unknownBy("Unknown"), beside(corev1.PodRunning))},
			runs.Outcome{Verdict: contract.Unknown, Reason: "Unknown", Finished: now},
		},
		"255 by the image itself counts": {
			failed(),
			[]*corev1.Pod{exited(255, "", unknownBy("Error"))},
			runs.Outcome{
				Verdict: contract.TryAgain, ExitCode: new(int32(255)), Finished: ended,
			},
		},
		"preempted is nobody's fault": {
			failed(),
			[]*corev1.Pod{exited(137, "", disrupted, because("Preempting", "by a critical pod"))},
			runs.Outcome{
				Verdict: contract.Disrupted, ExitCode: new(int32(137)), Reason: "Preempting",
				Message: "by a critical pod", Finished: ended,
			},
		},
		"shut down with its node is nobody's fault": {
			failed(),
			[]*corev1.Pod{exited(137, "", disrupted, because("Terminated", "node shutdown"))},
			runs.Outcome{
				Verdict: contract.Disrupted, ExitCode: new(int32(137)), Reason: "Terminated",
				Message: "node shutdown", Finished: ended,
			},
		},
		"a refusal cut short by a drain is none": {
			failed(),
			[]*corev1.Pod{exited(65, "", disrupted)},
			runs.Outcome{Verdict: contract.Disrupted, ExitCode: new(int32(65)), Finished: ended},
		},
		"done before the drain is done": {
			failed(),
			[]*corev1.Pod{exited(0, "made", disrupted)},
			runs.Outcome{Verdict: contract.Done, ExitCode: new(int32(0)), Message: "made", Finished: ended},
		},
		"the pod deleted by hand is nobody's fault": {
			failed(),
			[]*corev1.Pod{exited(137, "", deletedByHand)},
			runs.Outcome{Verdict: contract.Disrupted, ExitCode: new(int32(137)), Finished: ended},
		},
		"a pod that was deleted after its end has failed by itself": {
			failed(),
			[]*corev1.Pod{exited(69, "", deletedAfterEnd(time.Second))},
			runs.Outcome{Verdict: contract.TryAgain, ExitCode: new(int32(69)), Finished: ended},
		},
		"a pod that was deleted by force, and ended then, is nobody's fault": {
			failed(),
			[]*corev1.Pod{exited(69, "", deletedAfterEnd(0))},
			runs.Outcome{Verdict: contract.Disrupted, ExitCode: new(int32(69)), Finished: ended},
		},
		"a pod that was given time to end is nobody's fault": {
			failed(),
			[]*corev1.Pod{exited(69, "", deletedAfterEnd(time.Second), func(pod *corev1.Pod) { pod.DeletionGracePeriodSeconds = new(int64(30)) })},
			runs.Outcome{Verdict: contract.Disrupted, ExitCode: new(int32(69)), Finished: ended},
		},
		"the Job's deadline counts, though the Job controller deletes the pod": {
			deadline(),
			[]*corev1.Pod{exited(137, "", deletedByHand)},
			runs.Outcome{Verdict: contract.TryAgain, ExitCode: new(int32(137)), Reason: "DeadlineExceeded", Finished: ended},
		},
		"the Job's deadline counts without a pod too": {
			counted(deadline()), nil,
			runs.Outcome{
				Verdict: contract.TryAgain, Reason: "DeadlineExceeded",
				Message: "the Job is past its deadline, and its pod no longer exists: in Kubernetes' words", Finished: ended,
			},
		},
		"a container that was never made has made nothing": {
			failed(),
			[]*corev1.Pod{exited(137, "", neverMade, because("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"))},
			runs.Outcome{
				Verdict: contract.NotStarted, Reason: "DeadlineExceeded",
				Message: "Pod was active on the node longer than the specified deadline", Finished: ended,
			},
		},
		"of a lost node's pod the status may be old": {
			failed(),
			[]*corev1.Pod{exited(137, "", neverMade, disrupted, because("DeadlineExceeded", ""))},
			runs.Outcome{Verdict: contract.Disrupted, ExitCode: new(int32(137)), Reason: "DeadlineExceeded", Finished: ended},
		},
		"the pod's own deadline counts": {
			failed(),
			[]*corev1.Pod{exited(137, "", because("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"))},
			runs.Outcome{
				Verdict: contract.TryAgain, ExitCode: new(int32(137)), Reason: "DeadlineExceeded",
				Message: "Pod was active on the node longer than the specified deadline", Finished: ended,
			},
		},
		"no pod to read is unknown": {counted(failed()), nil, runs.Outcome{Verdict: contract.Unknown, Finished: ended}},
		"a Job whose pods were refused until its deadline": {
			deadline(), nil,
			runs.Outcome{Verdict: contract.NotStarted, Reason: "DeadlineExceeded", Finished: ended},
		},
		"complete without a pod of its own is unknown": {
			counted(complete()), nil,
			runs.Outcome{Verdict: contract.Unknown, Message: another, Finished: ended},
		},
		"complete by another pod, its own was deleted": {
			complete(),
			[]*corev1.Pod{started(deletedByHand)},
			runs.Outcome{Verdict: contract.Disrupted, Message: another, Finished: ended},
		},
		"complete by another pod, its own has failed": {
			complete(),
			[]*corev1.Pod{exited(75, "again")},
			runs.Outcome{Verdict: contract.TryAgain, ExitCode: new(int32(75)), Message: another, Finished: ended},
		},
		"complete, and its own pod is not seen to have ended yet": {
			complete(),
			[]*corev1.Pod{started()},
			runs.Outcome{Verdict: contract.Done, ExitCode: new(int32(0)), Finished: ended},
		},
		"a Job deleted by hand, its pod ended by itself": {
			terminating(jobThat("", "")),
			[]*corev1.Pod{exited(75, "again")},
			runs.Outcome{Verdict: contract.TryAgain, ExitCode: new(int32(75)), Message: "again", Finished: now},
		},
		"a Job deleted by hand before it had a pod": {
			terminating(jobThat("", "")), nil,
			runs.Outcome{Verdict: contract.NotStarted, Reason: runs.Cancelled, Finished: now},
		},
		"a Job deleted by hand whose pod nobody kept": {
			unkept(terminating(jobThat("", ""))), nil, runs.Outcome{Verdict: contract.Unknown, Finished: now},
		},
		"a Job deleted by hand, and its pod without a trace": {
			counted(terminating(jobThat("", ""))), nil, runs.Outcome{Verdict: contract.Unknown, Finished: now},
		},
		"an init container failed": {
			failed(), []*corev1.Pod{exited(1, "", neverRan)}, runs.Outcome{Verdict: contract.TryAgain, Finished: ended},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, runs.Read(test.job, test.pods, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunsThatWereDisruptedOrNeverStartedAreNotCounted(t *testing.T) {
	for verdict, want := range map[contract.Verdict]bool{
		contract.Done: true, contract.BadConfig: true, contract.BadRequest: true, contract.NoCapacity: true,
		contract.NoCredentials: true, contract.TryAgain: true, contract.Disrupted: false, contract.Unknown: false,
		contract.Unlisted: false, contract.NotStarted: false,
	} {
		if verdict.Counted() != want {
			t.Errorf("%s.Counted() = %v", verdict, !want)
		}
		if made := verdict == contract.BadConfig || verdict == contract.NoCredentials || verdict == contract.NotStarted; verdict.MadeNothing() != made {
			t.Errorf("%s.MadeNothing() = %v", verdict, !made)
		}
	}
}

// A drained pod is replaced within the Job, and the last pod has the outcome of the run.
func TestNewestPodIsRead(t *testing.T) {
	first := exited(143, "drained", disrupted)
	first.CreationTimestamp = metav1.NewTime(ended.Add(-time.Minute))
	second := exited(65, "refused")
	second.CreationTimestamp = metav1.NewTime(ended.Add(-time.Second))
	for _, pods := range [][]*corev1.Pod{{first, second}, {second, first}} {
		if got := runs.Read(failed(), pods, now); got.Verdict != contract.BadRequest {
			t.Errorf("verdict %s, want that of the second pod", got.Verdict)
		}
	}
}
