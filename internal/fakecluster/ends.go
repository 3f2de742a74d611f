package fakecluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// startFailed is the exit code of a container that the runtime could not start.
const startFailed = 128

// sidecar is the name of the second container of a pod.
const sidecar = "sidecar"

// leaveSidecar ends the container of a pod, beside which a sidecar runs on.
func (c *Cluster) leaveSidecar(pod *corev1.Pod, exit Exit) {
	set(c, Kubelet, pod, func(p *corev1.Pod) {
		c.setEnd(p, exit)
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: sidecar, ContainerID: "containerd://sidecar-" + p.Name,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: c.nowAt(p)}},
		})
	})
}

// endSidecar ends a pod whose sidecar does not end by itself, at its deadline: the kubelet then sets
// the phase Failed, whatever its containers have done (pkg/kubelet/kubelet_pods.go, getPhase and
// generateAPIPodStatus: the pod was evicted).
func (c *Cluster) endSidecar(pod *corev1.Pod, ended *corev1.ContainerStateTerminated) {
	if c.due(c.deadlineOf(pod)) {
		c.terminate(pod, Exit{Code: ended.ExitCode, Message: ended.Message}, "DeadlineExceeded")
	}
}

// reject is what a kubelet does with a pod that it does not admit (pkg/kubelet/kubelet.go,
// rejectPod): it has failed, and has no start and no status of any container. The reason is that of
// pkg/kubelet/lifecycle/predicate.go, OutOfcpu or NodeAffinity, or UnexpectedAdmissionError.
func (c *Cluster) reject(pod *corev1.Pod, reason string) {
	set(c, Kubelet, pod, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, reason, "Pod was rejected: it does not fit"
	})
}

// failStart ends a pod whose container the runtime has created and could not start. It has an ID
// and the exit code 128, and no process of it ever ran: containerd's StartError shows the start of
// the epoch as the time of its start.
func (c *Cluster) failStart(pod *corev1.Pod, reason string) {
	set(c, Kubelet, pod, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.StartTime = corev1.PodFailed, new(c.nowAt(p))
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: contract.Container, ContainerID: "containerd://" + p.Name,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: startFailed, Reason: reason, Message: "exec: no such file or directory",
				StartedAt: metav1.NewTime(time.Unix(0, 0)), FinishedAt: c.nowAt(p),
			}},
		}}
	})
}
