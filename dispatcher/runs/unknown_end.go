package runs

import corev1 "k8s.io/api/core/v1"

// A node that lost its power does not know how its containers ended. The exit code that it then
// says is not that of the program. A run of such a node, with the code 255, once counted as the
// only one that max-attempts allowed (TestARunWhoseEndItsNodeDoesNotKnowIsNotCounted).

// Reasons of a node that does not know how a container ended. containerd's, with the code 255, is
// for one that ran when containerd or the machine went down (internal/cri/server/restart.go,
// loadContainer). The kubelet's, with 137, is for one that its runtime does not know
// (pkg/kubelet/kubelet_pods.go, convertToAPIContainerStatuses; TerminatePod in
// pkg/kubelet/status/status_manager.go). A program that ends with 255 by itself has the reason
// Error.
const (
	unknownToRuntime = "Unknown"
	unknownToKubelet = "ContainerStatusUnknown"
)

// unknownEnd returns the reason of a node that does not know how the container "provisioner" of a
// pod ended, or whether it was started, or nothing. If the container never began, the init container
// before it may be the one.
func unknownEnd(pod *corev1.Pod) string {
	switch t := terminatedState(pod); {
	case t != nil && (isUnknown(t) || isStartError(t.Reason)):
		return t.Reason
	case t != nil || pod.Status.Phase != corev1.PodFailed:
		return ""
	}
	for _, s := range allStatuses(pod) {
		for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
			if isUnknown(t) {
				return t.Reason
			}
		}
	}
	return ""
}

func isUnknown(t *corev1.ContainerStateTerminated) bool {
	return t != nil && (t.Reason == unknownToRuntime || t.Reason == unknownToKubelet)
}
