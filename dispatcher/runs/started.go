package runs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HasStarted reports whether the container "provisioner" of any of a Job's pods has been created.
// Until then the run can have done nothing. What a mesh adds to the pod is no part of the run.
func HasStarted(pods []*corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		s := containerStatus(pod)
		if s == nil { // nothing is known
			return pod.Status.Phase != corev1.PodPending && pod.Status.Phase != ""
		}
		return s.ContainerID != "" || s.State.Running != nil || s.State.Terminated != nil
	})
}

// StartTime returns when the container "provisioner" of a Job's newest pod was started, zero if
// that is unknown.
func StartTime(pods []*corev1.Pod) metav1.Time {
	pod := NewestPod(pods)
	if pod == nil {
		return metav1.Time{}
	}
	switch s := containerStatus(pod); {
	case s == nil:
	case s.State.Running != nil:
		return s.State.Running.StartedAt
	case s.State.Terminated != nil:
		return s.State.Terminated.StartedAt
	}
	return metav1.Time{}
}

// AnyWithoutFinalizer reports whether a pod of a run that has not ended lacks our finalizer. The
// dispatcher removes it only from pods that have ended.
func AnyWithoutFinalizer(pods []*corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		return !ended && pod.DeletionTimestamp == nil && !HasFinalizer(pod)
	})
}
