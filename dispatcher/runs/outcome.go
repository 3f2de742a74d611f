package runs

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// Outcome is what became of a run.
type Outcome struct {
	Verdict  contract.Verdict `json:"verdict"`
	ExitCode *int32           `json:"exitCode,omitempty"`
	// Reason in Kubernetes' words: OOMKilled, Evicted, DeadlineExceeded.
	Reason string `json:"reason,omitempty"`
	// Message is the end of the container's output, printable, at most maxKept bytes.
	Message string `json:"message,omitempty"`
	// Capacity is the size of the volume after an expand, where the container reports it.
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	Finished time.Time          `json:"finished"`
	// MayRunUntil is until when a container of the run may still be at work unseen: its node has not told of its
	// end, and nobody waits for that any more. Nothing else may run for the claim until then.
	MayRunUntil time.Time `json:"quiet,omitzero"`
}

// maxKept is how much of a run's message is kept on its Job, in bytes.
const maxKept = 1024

// AnyUnfinished tells whether any of a Job's pods is waited for. One that was deleted by force is not: it may
// still run, but nobody will ever tell when it has ended.
func hasUnfinishedPod(pods []*corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return !hasPodEnded(pod) && !isDeletedUnscheduled(pod) && !isForceDeleted(pod) })
}

func hasPodEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isForceDeleted: somebody has deleted the pod without waiting for its node's word. The word may still come.
func isForceDeleted(pod *corev1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	return pod.DeletionTimestamp != nil && grace != nil && *grace == 0 && !hasPodEnded(pod) && !isDeletedUnscheduled(pod)
}

// isDeletedUnscheduled: a pod that was deleted before it had a node never gets one; the API server refuses the binding.
func isDeletedUnscheduled(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil && pod.Spec.NodeName == "" }

// HasFinalizer tells whether a pod stays, when it is deleted, until it has been read.
func HasFinalizer(pod *corev1.Pod) bool { return slices.Contains(pod.Finalizers, jobs.FinalizerRecord) }

// inFlight is how long after a Job's deletion a pod of it may still appear, whose making was under way.
const inFlight = 15 * time.Second

// Ended tells whether a Job has ended: it is Complete or Failed, or somebody deleted it and no pod of
// it runs any more, nor will. pods must be live where a decision hangs on the second.
func HasEnded(job *batchv1.Job, pods []*corev1.Pod, now time.Time) bool {
	return IsFinished(job) || job.DeletionTimestamp != nil && !hasUnfinishedPod(pods) && !now.Before(noPodAfter(job, pods))
}

// noPodAfter is when it is known of a deleted Job without a pod that none will come.
func noPodAfter(job *batchv1.Job, pods []*corev1.Pod) time.Time {
	if len(pods) > 0 || !neverHadPod(job) {
		return time.Time{}
	}
	return job.DeletionTimestamp.Add(inFlight)
}

// neverHadPod: no pod of the Job was ever counted. Every pod is kept until it has been read, so where there is none
// to read either, none ever was: admission refused it, or a queue never let the Job go. Of a Job whose template
// keeps no pod that cannot be told.
func neverHadPod(job *batchv1.Job) bool {
	s := job.Status
	tracked := s.UncountedTerminatedPods != nil && len(s.UncountedTerminatedPods.Succeeded)+len(s.UncountedTerminatedPods.Failed) > 0
	keeps := slices.Contains(job.Spec.Template.Finalizers, jobs.FinalizerRecord)
	return keeps && s.Active+s.Failed+s.Succeeded == 0 && (s.Terminating == nil || *s.Terminating == 0) && !tracked
}

// Finished tells whether a Job is Complete or Failed.
func IsFinished(job *batchv1.Job) bool { return finishedCondition(job) != nil }

func finishedCondition(job *batchv1.Job) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

// Read says what became of a Job that has ended. now is used only where nothing tells the time.
func Read(job *batchv1.Job, pods []*corev1.Pod, now time.Time) Outcome {
	out := Outcome{Verdict: contract.Unknown, Finished: now}
	c := finishedCondition(job)
	if c != nil {
		out.Finished = c.LastTransitionTime.Time
		out.Reason = c.Reason
	}
	if out.Reason == batchv1.JobReasonBackoffLimitExceeded {
		out.Reason = "" // with a limit of 0 it says only that the run failed
	}
	pod := newestPod(pods)
	if pod != nil {
		readPod(&out, pod)
		readCapacity(&out, job, pod)
	}
	if c != nil {
		readCondition(&out, c, pod != nil)
	}
	if pod == nil && neverHadPod(job) && out.Verdict != contract.Done {
		out.Verdict, out.Message = contract.NotStarted, ""
	}
	if until := mayRunUntil(job, pod); until.After(out.Finished) {
		out.MayRunUntil = until
	}
	return out
}

// mayRunUntil is until when a container of an ended Job may still be at work without its node's word on its end:
// until the pod's own deadline, which the kubelet keeps even when it is cut off. Zero: the kubelet has told.
func mayRunUntil(job *batchv1.Job, pod *corev1.Pod) time.Time {
	switch {
	case pod == nil && job.Status.Active == 0 && (job.Status.Terminating == nil || *job.Status.Terminating == 0),
		pod != nil && !isUnconfirmed(pod):
		return time.Time{}
	case pod != nil && pod.Status.StartTime != nil:
		return pod.Status.StartTime.Add(deadlineOf(pod.Spec.ActiveDeadlineSeconds))
	}
	// The pod went without a trace, by hand, or its node never told of its start.
	since := job.CreationTimestamp.Time
	if job.Status.StartTime != nil && job.Status.StartTime.After(since) {
		since = job.Status.StartTime.Time
	}
	return since.Add(deadlineOf(job.Spec.ActiveDeadlineSeconds))
}

func deadlineOf(deadline *int64) time.Duration {
	if deadline == nil {
		return 0 // Build always sets it
	}
	return time.Duration(*deadline) * time.Second
}

// isUnconfirmed: the pod was deleted by force, or by the garbage collector of pods whose node has gone, which
// also calls it Failed. Neither knows whether its container has ended.
func isUnconfirmed(pod *corev1.Pod) bool {
	collected := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByPodGC"
	})
	return terminatedState(pod) == nil && !isDeletedUnscheduled(pod) && (isForceDeleted(pod) || collected)
}

func readCondition(out *Outcome, c *batchv1.JobCondition, readable bool) {
	late := c.Reason == batchv1.JobReasonDeadlineExceeded
	switch {
	case c.Type == batchv1.JobComplete:
		out.Verdict, out.ExitCode, out.Reason = contract.Done, new(int32(0)), ""
	case late && !readable:
		out.Verdict, out.Message = contract.TryAgain, "past its deadline, and no pod is left to read: "+c.Message
	case late && out.Verdict == contract.Disrupted:
		out.Verdict = contract.TryAgain // the Job controller takes the pod away itself, past the deadline
	}
}

func newestPod(pods []*corev1.Pod) *corev1.Pod {
	var last *corev1.Pod
	for _, pod := range pods {
		if last == nil || last.CreationTimestamp.Before(&pod.CreationTimestamp) {
			last = pod
		}
	}
	return last
}

func readPod(out *Outcome, pod *corev1.Pod) {
	if pod.Status.Reason != "" {
		out.Reason, out.Message = pod.Status.Reason, printable(pod.Status.Message)
	}
	terminated := terminatedState(pod)
	if terminated != nil {
		readContainer(out, terminated)
	}
	switch {
	case terminated != nil && terminated.ExitCode == contract.ExitDone:
	case wasNeverMade(pod):
		out.Verdict, out.ExitCode = contract.NotStarted, nil
	case wasDisrupted(pod):
		out.Verdict = contract.Disrupted
	case pod.Status.Phase == corev1.PodFailed && (terminated == nil || pod.Status.Reason != ""):
		out.Verdict = contract.TryAgain // evicted for its own use, or past its deadline
	}
}

func readContainer(out *Outcome, terminated *corev1.ContainerStateTerminated) {
	out.ExitCode, out.Verdict = new(terminated.ExitCode), contract.VerdictOf(int(terminated.ExitCode))
	if said := printable(terminated.Message); said != "" {
		out.Message = said
	}
	if terminated.Reason == "OOMKilled" {
		out.Reason, out.Verdict = terminated.Reason, contract.TryAgain
	}
}

func readCapacity(out *Outcome, job *batchv1.Job, pod *corev1.Pod) {
	terminated := terminatedState(pod)
	if terminated != nil && job.Labels[jobs.LabelVerb] == string(contract.Expand) {
		out.Capacity = reportedCapacity(terminated.Message, job.Labels[contract.LabelClaimUID])
	}
}

// terminatedState returns how the container "provisioner" ended, or nil.
func terminatedState(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == contract.Container {
			return s.State.Terminated
		}
	}
	return nil
}

// wasNeverMade tells whether the container was never made: the pod had no node, or the kubelet, when it gave
// the pod up at its deadline or on its deletion, had not made it, for want of an image or a Secret. Nobody
// else's word counts: of a lost node's pod the last status known may be old.
func wasNeverMade(pod *corev1.Pod) bool {
	if isDeletedUnscheduled(pod) {
		return true
	}
	givenUp := pod.Status.Reason == "DeadlineExceeded" || pod.DeletionTimestamp != nil
	if pod.Status.Phase != corev1.PodFailed || !givenUp || isDisruptionTarget(pod) {
		return false
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	return len(statuses) > 0 && !slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool {
		return s.ContainerID != "" || s.LastTerminationState.Terminated != nil
	})
}

// wasDisrupted tells whether the pod was taken away: by a drain, a preemption, node pressure, or by
// somebody who deleted it.
func wasDisrupted(pod *corev1.Pod) bool { return isDisruptionTarget(pod) || pod.DeletionTimestamp != nil }

func isDisruptionTarget(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

// printable makes a container's output fit for an annotation and a terminal: valid UTF-8 without
// control characters, at most maxKept bytes.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, ""))
	if len(text) > maxKept {
		text = shorten(text)
	}
	return strings.TrimSpace(text)
}

// shorten keeps the lines for the claim's user, and the end of the rest. What is cut begins with an
// ellipsis: a cut must not make a line of the user's out of the middle of another.
func shorten(text string) string {
	const ellipsis = "…"
	var user, rest strings.Builder
	for line := range strings.Lines(text) {
		if contract.ForClaim(line) != "" {
			user.WriteString(line)
		} else {
			rest.WriteString(line)
		}
	}
	kept := user.String()
	if len(kept) > maxKept/2 {
		kept = strings.ToValidUTF8(kept[:maxKept/2], "") + ellipsis + "\n"
	}
	tail := rest.String()
	if room := maxKept - len(kept) - len(ellipsis); len(tail) > room {
		tail = ellipsis + strings.ToValidUTF8(tail[len(tail)-room:], "")
	}
	return kept + tail
}

// String says how a run ended in a few words, such as "exit code 75".
func (o Outcome) String() string {
	switch {
	case o.Verdict == contract.Unknown:
		return "it left no pod to read"
	case o.Verdict == contract.Disrupted:
		return "its pod was taken away"
	case o.Verdict == contract.NotStarted:
		return "its container never started"
	case o.Verdict == contract.Unlisted:
		return strings.TrimPrefix(o.Reason+", ", ", ") + "the batch says nothing of this request"
	case o.Reason != "" && o.ExitCode != nil:
		return fmt.Sprintf("%s, exit code %d", o.Reason, *o.ExitCode)
	case o.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *o.ExitCode)
	case o.Reason != "":
		return o.Reason
	default:
		return "its container never ran"
	}
}
