package runs

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// GatedPod returns the pod of a Job that waits for the dispatcher's confirmation, or nil. A pod
// that is being deleted gets no node any more.
func GatedPod(pods []*corev1.Pod) *corev1.Pod {
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && hasGate(pod) {
			return pod
		}
	}
	return nil
}

func hasGate(pod *corev1.Pod) bool {
	return slices.Contains(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: jobs.GateConfirm})
}

// HasVanished reports whether the pod that was confirmed no longer exists, finalizers and all. Its
// container may still run, and may have made something. The Job controller replaces such a pod
// unless it had counted it.
func HasVanished(job *batchv1.Job, pods []*corev1.Pod) bool {
	confirmed := job.Annotations[jobs.AnnConfirmed]
	return confirmed != "" && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return string(pod.UID) == confirmed })
}

// IsReplaced reports whether the Job of a run that has ended has another pod, which waits for its
// gate. People removed the first one, finalizers and all, before it was counted. The run will not
// be confirmed again, and until the Job's deadline that pod would hold a slot and the next run.
func IsReplaced(job *batchv1.Job, pods []*corev1.Pod) bool {
	return job.DeletionTimestamp == nil && !IsFinished(job) && HasVanished(job, pods) && GatedPod(pods) != nil
}

// MayRun reports whether a container of a pod may be running now or later, and until when at most,
// zero for no limit. It may not when its node has reported the end, or when the pod was deleted
// before it had a node. Without a report from its node it may until its own deadline, and longer if
// the node is lost.
func MayRun(pod *corev1.Pod, now time.Time) (may bool, until time.Time) {
	switch {
	case isEndUnreported(pod):
		until = podMayRunUntil(pod, pod.CreationTimestamp.Time)
		return now.Before(until), until
	default:
		return !IsOver(pod), time.Time{}
	}
}

// IsNodeLost reports whether no clock shows when a pod of a node has ended: the node exists, and
// its kubelet does not answer. Only the kubelet ends a pod at its deadline. A machine that was
// frozen continues with its containers where it stopped. A node that is out of service has been
// shut down, as has one whose Node was deleted.
func IsNodeLost(node *corev1.Node) bool {
	if node == nil {
		return false
	}
	return !IsReady(node) && !slices.ContainsFunc(node.Spec.Taints, IsOutOfService)
}

// IsReady reports whether the kubelet of a node answers, and starts pods.
func IsReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// TaintOutOfService is what an administrator puts on a node that has been shut down.
const TaintOutOfService = corev1.TaintNodeOutOfService

// IsOutOfService reports whether a taint says that its node has been shut down.
func IsOutOfService(t corev1.Taint) bool { return t.Key == TaintOutOfService }

// confirmMargin is how much longer than the pod's own deadline a Job must have left when its pod's
// gate is removed.
const confirmMargin = time.Minute

// toBeCounted is for how long a gated pod waits until the Job controller has counted it.
const toBeCounted = 3 * time.Second

// CountedBy returns until when to wait for the Job controller to count a gated pod, zero if it has,
// or if there is none. It does so in the Job's status right after it has created the pod (syncJob
// in pkg/controller/job/job_controller.go). If a write of ours comes in between, its own fails, and
// it tries again a second later.
func CountedBy(job *batchv1.Job, gated *corev1.Pod) time.Time {
	if gated == nil || job == nil || job.DeletionTimestamp != nil || job.Status.Active > 0 {
		return time.Time{}
	}
	return gated.CreationTimestamp.Add(toBeCounted)
}

// ConfirmBefore returns until when the gate of a Job's pod may be removed, so that the run has its
// whole time before the Job's own deadline; zero for no limit. A dispatcher that had been away once
// confirmed runs that were killed, and counted, a moment later
// (TestConfirmBeforeLeavesARunItsWholeTime).
func ConfirmBefore(job *batchv1.Job) time.Time {
	if job.Status.StartTime == nil || job.Spec.ActiveDeadlineSeconds == nil {
		return time.Time{}
	}
	end := job.Status.StartTime.Add(deadlineOf(job.Spec.ActiveDeadlineSeconds))
	return end.Add(-deadlineOf(job.Spec.Template.Spec.ActiveDeadlineSeconds) - confirmMargin)
}
