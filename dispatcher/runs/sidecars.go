package runs

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// The container "provisioner" is the run. A mesh adds containers to its pod that never end.

// HasOnlySidecars reports whether the node of a pod has said that the container "provisioner" has
// ended, and another container keeps the pod from ending.
func HasOnlySidecars(pod *corev1.Pod) bool {
	others := allStatuses(pod)
	return isUnfinished(pod) && terminatedState(pod) != nil && slices.ContainsFunc(others, func(s corev1.ContainerStatus) bool {
		return s.Name != contract.Container && s.State.Terminated == nil
	})
}

// EndNow is the deadline that ends a pod: the API server accepts none that is shorter.
const EndNow = 1

// IsToEnd reports whether a pod is to be ended since only its sidecars are left, and its node does
// not end it already. The outcome is recorded after that: a kubelet that starts anew, and has lost
// what it knew, would run the container again, but not in a pod past its deadline.
func IsToEnd(pod *corev1.Pod) bool {
	deadline := pod.Spec.ActiveDeadlineSeconds
	return HasOnlySidecars(pod) && pod.DeletionTimestamp == nil && (deadline == nil || *deadline > EndNow)
}

// ReleasablePods returns those of some pods that are kept until they have been read, and have ended
// with their sidecars.
func ReleasablePods(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !HasFinalizer(pod) || isUnfinished(pod) })
}

// hasEndedByItself reports whether the container of a pod ended before anything else ended the pod:
// only its sidecars are left, or they were ended at the pod's deadline, later. Both times are by the
// clock of the node.
func hasEndedByItself(job *batchv1.Job, pod *corev1.Pod) bool {
	t, start := terminatedState(pod), pod.Status.StartTime
	switch {
	case t == nil || wasDisrupted(pod):
		return false
	case HasOnlySidecars(pod):
		return true
	case pod.Status.Reason != deadlineExceeded || start == nil || t.FinishedAt.IsZero():
		return false
	default:
		return t.FinishedAt.Time.Before(start.Add(deadlineOf(job.Spec.Template.Spec.ActiveDeadlineSeconds)))
	}
}

// allStatuses returns the statuses of a pod's containers, init containers included.
func allStatuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}
