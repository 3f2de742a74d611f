package fakecluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// waitsFor is how long the kubelet gives one of two reasons for a container that waits for its
// image, before it gives the other.
const waitsFor = 20 * time.Second

// startContainer starts a pod's container, after its init container if there is one.
func (c *Cluster) startContainer(pod *corev1.Pod) {
	image := c.Images[pod.Spec.Containers[0].Image]
	switch {
	case image.Rejected != "":
		c.reject(pod, image.Rejected)
	case image.Waits != "":
		c.keepWaiting(pod, image.Waits)
	case !c.due(pod.CreationTimestamp.Add(image.StartsAfter)):
	case image.InitTakes > 0 && !IsInitialising(pod):
		c.checkAlone(pod)
		set(c, Kubelet, pod, func(p *corev1.Pod) {
			p.Status.StartTime = new(c.nowAt(p))
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{
				Name: "init", ContainerID: "containerd://init-" + p.Name,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: c.nowAt(p)}},
			}}
		})
	case image.InitTakes > 0 && !c.due(c.began(pod).Add(image.InitTakes)):
	case image.StartFails != "":
		c.failStart(pod, image.StartFails)
	default:
		c.checkAlone(pod)
		set(c, Kubelet, pod, func(p *corev1.Pod) {
			p.Status.Phase, p.Status.StartTime = corev1.PodRunning, new(c.nowAt(p))
			p.Status.ContainerStatuses, p.Status.InitContainerStatuses = nil, nil
		})
	}
}

// IsInitialising reports whether a pod's init container is at work.
func IsInitialising(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodPending && len(pod.Status.InitContainerStatuses) > 0
}

// keepWaiting says why a container does not start, until the pod's deadline.
func (c *Cluster) keepWaiting(pod *corev1.Pod, why string) {
	created := pod.CreationTimestamp.Time
	turn := c.clock.Now().Sub(created).Truncate(waitsFor)
	if why == "ErrImagePull" && turn%(2*waitsFor) != 0 {
		why = "ImagePullBackOff"
	}
	switch statuses := pod.Status.ContainerStatuses; {
	case c.due(created.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)):
		c.endUnstarted(pod, "DeadlineExceeded")
	case len(statuses) == 0 || statuses[0].State.Waiting.Reason != why:
		set(c, Kubelet, pod, func(p *corev1.Pod) {
			p.Status.StartTime = new(c.nowAt(p))
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name:  contract.Container,
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: why, Message: "it cannot be had"}},
			}}
		})
	default:
		c.due(created.Add(turn + waitsFor))
	}
}

// kill ends the containers of a pod that is deleted.
func (c *Cluster) kill(pod *corev1.Pod) {
	image := c.Images[pod.Spec.Containers[0].Image]
	switch statuses := pod.Status.ContainerStatuses; {
	case pod.Status.Phase == corev1.PodPending && !IsInitialising(pod) && (len(statuses) == 0 || statuses[0].State.Waiting != nil):
		c.endUnstarted(pod, "")
	case c.due(pod.DeletionTimestamp.Add(image.EndsAfter)):
		c.terminate(pod, Exit{Code: sigkill}, "")
	}
}

// endUnstarted ends a pod whose container was never created.
func (c *Cluster) endUnstarted(pod *corev1.Pod, reason string) {
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	set(c, Kubelet, pod, func(p *corev1.Pod) {
		for _, s := range p.Status.ContainerStatuses {
			state = s.State
		}
		if c.Worlds.MarksUnknown {
			state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason: "ContainerStatusUnknown", Message: "The container could not be located when the pod was terminated", ExitCode: sigkill,
			}}
		}
		p.Status.Phase, p.Status.Reason = corev1.PodFailed, reason
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: contract.Container, State: state}}
	})
}
