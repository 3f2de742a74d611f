package runs

import (
	"slices"
	"strings"
	"time"
	"unicode"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// Outcome is what happened to a run, as its Job records it.
type Outcome = jobs.Outcome

// Cancelled is the Reason of a run that was NotStarted because its Job was deleted before.
const Cancelled = jobs.Cancelled

// outOfMemory is the Reason of a run that needed more memory than its container may have.
const outOfMemory = "OOMKilled"

// maxMessage is how much of a run's message is kept on its Job, in bytes.
const maxMessage = 1024

// hasUnfinishedPod reports whether the dispatcher waits for the container of any of a Job's pods.
func hasUnfinishedPod(pods []*corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return isUnfinished(pod) && !HasOnlySidecars(pod) })
}

// isUnfinished reports whether a node is to report the end of a pod. None ever will of a pod that
// was deleted by force: such a pod may still run.
func isUnfinished(pod *corev1.Pod) bool {
	return !hasPodEnded(pod) && !isDeletedUnscheduled(pod) && !isForceDeleted(pod)
}

// hasPodEnded reports whether a pod has succeeded or failed.
func hasPodEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isForceDeleted reports whether a pod was deleted without waiting for its node's report. The
// report may still come.
func isForceDeleted(pod *corev1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	return pod.DeletionTimestamp != nil && grace != nil && *grace == 0 && !hasPodEnded(pod) && !isDeletedUnscheduled(pod)
}

// isDeletedUnscheduled reports whether a pod was deleted before it had a node. It never gets one,
// since the API server refuses the binding.
func isDeletedUnscheduled(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && pod.Spec.NodeName == ""
}

// HasFinalizer reports whether a pod that is deleted is kept until it has been read.
func HasFinalizer(pod *corev1.Pod) bool { return slices.Contains(pod.Finalizers, jobs.FinalizerRecord) }

// inFlight is how long after a Job's deletion a pod of it may still appear, since its creation was
// under way.
const inFlight = 15 * time.Second

// HasEnded reports whether a run has ended. Its Job is Complete or Failed, its container is done,
// or only sidecars of its pod are left. Or the Job was deleted, and no pod of it runs or will run.
// The pods must be live where a decision depends on a deletion.
func HasEnded(job *batchv1.Job, pods []*corev1.Pod, now time.Time) bool {
	return IsFinished(job) && !isCompletedByOthers(job, pods) || isDone(job, pods) || slices.ContainsFunc(pods, HasOnlySidecars) && !hasUnfinishedPod(pods) ||
		job.DeletionTimestamp != nil && !hasUnfinishedPod(pods) && !now.Before(noPodAfter(job, pods))
}

// isCompletedByOthers reports whether a Job is Complete while its own pod is still being deleted: the
// pod of others completed it, see readCondition. Its own may work on.
func isCompletedByOthers(job *batchv1.Job, pods []*corev1.Pod) bool {
	return finishedCondition(job).Type == batchv1.JobComplete &&
		slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil && isUnfinished(pod) })
}

// isDone reports whether the container of a run has ended with success, and that is enough: it did
// not write a PV, which a cache may not show yet. What its node and the Job controller still report
// changes nothing, and takes two seconds. The kubelet removes the sandbox before it sets the phase,
// and the Job controller collects pods for a second. Until the pod has ended, a node that starts
// anew may do the same once more, which finds it done. The next run of the claim waits for that.
func isDone(job *batchv1.Job, pods []*corev1.Pod) bool {
	return HasSucceeded(pods) && !isProvenByPV(job)
}

// HasSucceeded reports whether the container of a run has ended with success. With another pod of
// the Job it is not known which of them is the run's.
func HasSucceeded(pods []*corev1.Pod) bool {
	if len(pods) != 1 {
		return false
	}
	t := terminatedState(pods[0])
	return t != nil && t.ExitCode == contract.ExitDone
}

// isProvenByPV reports whether the container of a Job writes PVs.
func isProvenByPV(job *batchv1.Job) bool {
	return job.Labels[jobs.LabelVerb] == string(contract.Provision) && !jobs.RecordOf(job, jobs.UIDs(job)[0]).DescribesPV
}

// noPodAfter returns from when on a deleted Job without a pod is known to get none.
func noPodAfter(job *batchv1.Job, pods []*corev1.Pod) time.Time {
	if len(pods) > 0 || !neverHadPod(job) {
		return time.Time{}
	}
	return job.DeletionTimestamp.Add(inFlight)
}

// neverHadPod reports whether no pod of the Job was ever counted. Every pod is kept until it has
// been read. So if there is none to read either, none was ever created: admission refused it, or a
// queue never resumed the Job. It is unknown for a Job whose template does not keep its pods.
func neverHadPod(job *batchv1.Job) bool {
	s := job.Status
	tracked := s.UncountedTerminatedPods != nil && len(s.UncountedTerminatedPods.Succeeded)+len(s.UncountedTerminatedPods.Failed) > 0
	keeps := slices.Contains(job.Spec.Template.Finalizers, jobs.FinalizerRecord)
	return keeps && job.Annotations[jobs.AnnConfirmed] == "" && s.Active+s.Failed+s.Succeeded == 0 && (s.Terminating == nil || *s.Terminating == 0) && !tracked
}

// IsFinished reports whether a Job is Complete or Failed.
func IsFinished(job *batchv1.Job) bool { return finishedCondition(job) != nil }

// finishedCondition returns the condition of a Job that is Complete or Failed, or nil.
func finishedCondition(job *batchv1.Job) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

// Read returns what happened to a Job that has ended. now is used only if no object has the time of
// the end.
func Read(job *batchv1.Job, pods []*corev1.Pod, now time.Time) Outcome {
	out := Outcome{Verdict: contract.Unknown, Finished: now}
	c := finishedCondition(job)
	if c != nil {
		out.Finished = c.LastTransitionTime.Time
		out.Reason = c.Reason
	}
	if out.Reason == batchv1.JobReasonBackoffLimitExceeded {
		out.Reason = "" // with a limit of 0 it means only that the run failed
	}
	pod := NewestPod(pods)
	if HasVanished(job, pods) {
		pod = nil // another pod of the Job says nothing of the one that ran
	}
	if pod != nil {
		readPod(&out, job, pod)
		readCapacity(&out, job, pod)
	}
	if c != nil {
		readCondition(&out, c, pod)
	}
	if pod == nil && neverHadPod(job) && out.Verdict != contract.Done {
		out.Verdict, out.Message = contract.NotStarted, ""
	}
	readCancelled(&out, c, job, pod)
	out = EndedBy(out, now, now)
	readMayRun(&out, job, pod)
	return out
}

// readMayRun completes the outcome of a run whose node has not reported its end. A time that has
// passed is kept if the node is known, since that may be lost.
func readMayRun(out *Outcome, job *batchv1.Job, pod *corev1.Pod) {
	switch until := mayRunUntil(job, pod, out.Finished); {
	case pod != nil && !until.IsZero():
		out.MayRunUntil, out.Node = until, pod.Spec.NodeName
	case until.After(out.Finished):
		out.MayRunUntil = until
	}
}

// readCancelled completes the outcome of a run that never started because its Job was deleted.
func readCancelled(out *Outcome, c *batchv1.JobCondition, job *batchv1.Job, pod *corev1.Pod) {
	if out.Verdict != contract.NotStarted || c != nil || job.DeletionTimestamp == nil {
		return
	}
	out.Reason = Cancelled
	if pod != nil {
		out.Node = pod.Spec.NodeName
	}
}

// mayRunUntil returns until when a container of an ended Job may still be running without a report
// from its node, zero if the kubelet has reported the end. That is the pod's own deadline and its
// grace period, which the kubelet keeps to even when it cannot reach the API server. A pod that was
// deleted by another client, finalizers and all, had been started before its Job ended.
func mayRunUntil(job *batchv1.Job, pod *corev1.Pod, ended time.Time) time.Time {
	s := job.Status
	switch {
	case pod == nil && !mayHavePod(job), pod != nil && !isEndUnreported(pod):
		return time.Time{}
	case pod == nil:
		return ended.Add(deadlineOf(job.Spec.Template.Spec.ActiveDeadlineSeconds) + defaultGracePeriod + clockSkew)
	}
	since := job.CreationTimestamp.Time
	if s.StartTime != nil && s.StartTime.After(since) {
		since = s.StartTime.Time
	}
	return podMayRunUntil(pod, since)
}

// mayHavePod reports whether a Job without a pod may have one at work: it was confirmed, or the Job
// still counts it. That the Job is Complete says nothing of it: another pod may have completed it.
func mayHavePod(job *batchv1.Job) bool {
	s := job.Status
	return s.Active > 0 || s.Terminating != nil && *s.Terminating > 0 || job.Annotations[jobs.AnnConfirmed] != ""
}

// podMayRunUntil returns until when a pod may run of whose end no node will report. since is when
// its Job or the pod itself was created.
func podMayRunUntil(pod *corev1.Pod, since time.Time) time.Time {
	return lastBegin(pod, since).Add(deadlineOf(pod.Spec.ActiveDeadlineSeconds) + gracePeriodOf(pod) + clockSkew)
}

const (
	// clockSkew is how far the clocks of a node and of the API server may differ.
	clockSkew          = time.Minute
	defaultGracePeriod = 30 * time.Second
)

// lastBegin returns the latest time at which the kubelet may have begun to count a pod's deadline,
// not before that of its Job. The start time is the node's clock, and a pod whose node was cut off
// just after it was scheduled has none.
func lastBegin(pod *corev1.Pod, last time.Time) time.Time {
	if pod.CreationTimestamp.After(last) {
		last = pod.CreationTimestamp.Time
	}
	if start := pod.Status.StartTime; start != nil && start.After(last) {
		last = start.Time
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	return last
}

// gracePeriodOf returns how long the kubelet waits between a pod's deadline and the end of its
// containers.
func gracePeriodOf(pod *corev1.Pod) time.Duration {
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		return defaultGracePeriod
	}
	return time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
}

func deadlineOf(deadline *int64) time.Duration {
	if deadline == nil {
		return 0 // Build always sets it
	}
	return time.Duration(*deadline) * time.Second
}

// isEndUnreported reports whether no node will report how a pod ended. The pod was deleted by
// force, or by the garbage collector of pods whose node no longer exists, which also sets its phase
// to Failed. Neither knows whether its container has ended.
func isEndUnreported(pod *corev1.Pod) bool {
	collected := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByPodGC"
	})
	return terminatedState(pod) == nil && !isDeletedUnscheduled(pod) && (isForceDeleted(pod) || collected)
}

// readCondition completes an outcome by the Job's condition. pod is the one that was read, or nil.
// That a Job is Complete counts only with a pod of its own that may have done it. The Job
// controller adopts any pod with its label, and deletes another as the one too many. The pod of
// others once completed the Job of a delete that had not run (TestADeleteIsNotDoneByAPodOfOthers).
func readCondition(out *Outcome, c *batchv1.JobCondition, pod *corev1.Pod) {
	late := c.Reason == batchv1.JobReasonDeadlineExceeded
	switch {
	case c.Type == batchv1.JobComplete && !mayHaveDone(out, pod):
		out.Reason, out.Message = "", "the Job is Complete, but not by the pod of this run"
	case c.Type == batchv1.JobComplete:
		out.Verdict, out.ExitCode, out.Reason = contract.Done, new(int32(0)), ""
	case late && pod == nil:
		out.Verdict, out.Message = contract.TryAgain, "the Job is past its deadline, and its pod no longer exists: "+c.Message
	case late && out.Verdict == contract.Disrupted:
		out.Verdict = contract.TryAgain // past the deadline the Job controller itself deletes the pod
	}
}

// mayHaveDone reports whether a pod, whose outcome was read, has done its run, or may have, since its
// end is not seen yet.
func mayHaveDone(out *Outcome, pod *corev1.Pod) bool {
	return out.Verdict == contract.Done || pod != nil && pod.DeletionTimestamp == nil && out.ExitCode == nil
}

// NewestPod returns the newest of a Job's pods, or nil.
func NewestPod(pods []*corev1.Pod) *corev1.Pod {
	var last *corev1.Pod
	for _, pod := range pods {
		if last == nil || last.CreationTimestamp.Before(&pod.CreationTimestamp) {
			last = pod
		}
	}
	return last
}

// readPod completes an outcome by the pod's status. What became of the pod after its container had
// ended by itself is no part of it.
func readPod(out *Outcome, job *batchv1.Job, pod *corev1.Pod) {
	terminated, byItself := terminatedState(pod), hasEndedByItself(job, pod)
	if pod.Status.Reason != "" && !byItself {
		out.Reason, out.Message = pod.Status.Reason, printable(pod.Status.Message)
	}
	if terminated != nil {
		readContainer(out, terminated)
	}
	if terminated == nil || terminated.ExitCode != contract.ExitDone {
		readEnd(out, job, pod, byItself)
	}
}

// readEnd completes the outcome of a run that is not done by what has ended its pod.
func readEnd(out *Outcome, job *batchv1.Job, pod *corev1.Pod, byItself bool) {
	switch {
	case wasNeverMade(pod) && !wasRejectedLate(job, pod):
		readNeverMade(out, pod)
	case unknownEnd(pod) != "":
		out.Verdict, out.ExitCode, out.Reason = contract.Unknown, nil, unknownEnd(pod)
	case byItself:
	case wasDisrupted(pod):
		out.Verdict = contract.Disrupted
	case isRejected(pod):
		out.Verdict = contract.Unknown // by a kubelet that had started it, see wasRejectedLate
	case pod.Status.Phase == corev1.PodFailed && (terminatedState(pod) == nil || pod.Status.Reason != ""):
		out.Verdict = contract.TryAgain // evicted for its own resource usage, or past its deadline
	}
}

// readContainer completes an outcome by how the container ended. One that is done although the kernel
// has killed a child of it is done: its Job is Complete, too.
func readContainer(out *Outcome, terminated *corev1.ContainerStateTerminated) {
	out.ExitCode, out.Verdict = new(terminated.ExitCode), contract.VerdictOf(int(terminated.ExitCode))
	if said := printable(terminated.Message); said != "" {
		out.Message = said
	}
	if terminated.Reason == outOfMemory && terminated.ExitCode != contract.ExitDone {
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
	if s := containerStatus(pod); s != nil {
		return s.State.Terminated
	}
	return nil
}

// containerStatus returns the status of the container "provisioner", or nil.
func containerStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i, s := range pod.Status.ContainerStatuses {
		if s.Name == contract.Container {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// wasDisrupted reports whether the pod was evicted by a drain, a preemption or node pressure, or
// deleted by another client.
func wasDisrupted(pod *corev1.Pod) bool {
	return isDisruptionTarget(pod) || pod.DeletionTimestamp != nil && !wasDeletedLater(pod)
}

// wasDeletedLater reports whether a pod was deleted after its container had ended, as with a Job
// that a policy lets expire at once. Each failure of such a run once counted as a disruption
// (TestFailuresHaveTheirVerdict). The API server gives a pod that has ended no grace period, and
// neither one that is force-deleted. Only the times differ, which are of two clocks.
func wasDeletedLater(pod *corev1.Pod) bool {
	t, grace := terminatedState(pod), pod.DeletionGracePeriodSeconds
	return t != nil && !t.FinishedAt.IsZero() && grace != nil && *grace == 0 && t.FinishedAt.Before(pod.DeletionTimestamp)
}

func isDisruptionTarget(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

// printable returns a container's output as it fits into an annotation and a terminal: valid UTF-8
// without control characters, at most maxMessage bytes.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, ""))
	if len(text) > maxMessage {
		text = shorten(text)
	}
	return strings.TrimSpace(text)
}

// shorten keeps the lines for the claim's user, and the end of the rest. What is cut begins with an
// ellipsis, so that a cut does not turn the middle of a line into a line for the user.
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
	if len(kept) > maxMessage/2 {
		kept = strings.ToValidUTF8(kept[:maxMessage/2], "") + ellipsis + "\n"
	}
	tail := rest.String()
	if room := maxMessage - len(kept) - len(ellipsis); len(tail) > room {
		tail = ellipsis + strings.ToValidUTF8(tail[len(tail)-room:], "")
	}
	return kept + tail
}
