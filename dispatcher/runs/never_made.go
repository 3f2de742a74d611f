package runs

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// A run whose container was never started has made nothing, whatever else of its pod has run.

// Reasons of container runtimes for a container that could not be started: containerd's, and that
// of cri-dockerd.
const (
	startError         = "StartError"
	containerCannotRun = "ContainerCannotRun"
)

func isStartError(reason string) bool { return reason == startError || reason == containerCannotRun }

// deadlineExceeded is the kubelet's reason for a pod that is past its deadline.
const deadlineExceeded = "DeadlineExceeded"

// wasNeverMade reports whether the container was never started. The pod had no node, the kubelet
// rejected it, or the runtime could not start the container. Or the kubelet stopped the pod, at its
// deadline or on its deletion, and had not created the container, for lack of an image or a Secret.
// Only the kubelet's status counts: the last known status of a pod on a lost node may be old.
func wasNeverMade(pod *corev1.Pod) bool {
	givenUp := pod.Status.Reason == deadlineExceeded || pod.DeletionTimestamp != nil
	switch {
	case isDeletedUnscheduled(pod):
		return true
	case isDisruptionTarget(pod):
		return false
	case pod.Status.Phase == corev1.PodFailed && givenUp && wasNeverCreated(pod):
		return true
	default:
		return isRejected(pod) || couldNotStart(pod)
	}
}

// wasNeverCreated reports whether the status of the container says that it never was.
func wasNeverCreated(pod *corev1.Pod) bool {
	s := containerStatus(pod)
	return s != nil && s.ContainerID == "" && s.LastTerminationState.Terminated == nil
}

// isRejected reports whether the kubelet did not admit the pod: for lack of room (OutOfcpu), under
// pressure (Evicted), by its labels (NodeAffinity). It then writes a reason and no status of any
// container.
func isRejected(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" && len(pod.Status.InitContainerStatuses)+len(pod.Status.ContainerStatuses) == 0
}

// wasRejectedLate reports whether the kubelet had the pod for a while before it rejected it. A kubelet
// that was restarted may reject a pod that it had started, and takes away what the pod's status said.
func wasRejectedLate(job *batchv1.Job, pod *corev1.Pod) bool {
	end, start := finishedCondition(job), pod.Status.StartTime
	return isRejected(pod) && end != nil && start != nil && end.LastTransitionTime.Sub(start.Time) > clockSkew
}

// couldNotStart reports whether the runtime has created the container and could not start its
// program, as where that does not exist. Such a container has an exit code, and no time of a start:
// cri-dockerd shows that of its creation instead (toRuntimeAPIContainerStatus, ContainerStatus).
func couldNotStart(pod *corev1.Pod) bool {
	t := terminatedState(pod)
	if t == nil || !isStartError(t.Reason) || mayHaveStarted(t.Message) {
		return false
	}
	return t.StartedAt.Unix() <= 0 || t.Reason == containerCannotRun
}

// mayHaveStarted reports whether containerd does not know if the program runs: the request to start
// it got no answer. What the OCI runtime itself says is an answer.
func mayHaveStarted(message string) bool {
	return strings.Contains(message, "failed to start containerd task") && !strings.Contains(message, "OCI runtime")
}

// readNeverMade completes the outcome of a run whose container was never started.
func readNeverMade(out *Outcome, pod *corev1.Pod) {
	out.Verdict, out.ExitCode = contract.NotStarted, nil
	if couldNotStart(pod) {
		out.Reason = terminatedState(pod).Reason
	}
}
