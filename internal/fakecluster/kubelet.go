package fakecluster

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Kubelet is the kubelets' name in the history.
const Kubelet = "kubelet"

// sigkill is the exit code of a container that was killed.
const sigkill = 137

// runKubelets runs every pod, whatever its node.
func (c *Cluster) runKubelets() {
	c.expandFileSystems()
	c.runPhases()
	c.stopOrphans()
	for _, pod := range shared[*corev1.Pod](c) {
		if !HasEnded(pod) && !c.isSilent(pod) {
			c.moveOn(pod)
		}
	}
	for _, pod := range shared[*corev1.Pod](c) {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && !c.isSilent(pod) {
			c.runContainer(pod)
		}
	}
}

// isSilent reports whether the kubelet of a pod's node neither hears nor says anything.
func (c *Cluster) isSilent(pod *corev1.Pod) bool {
	return c.Frozen[pod.Spec.NodeName] || c.CutOff[pod.Spec.NodeName]
}

// moveOn places a pod, starts its container, or ends it if it is deleted.
func (c *Cluster) moveOn(pod *corev1.Pod) {
	switch {
	case pod.Spec.NodeName == "":
		c.schedule(pod)
	case pod.DeletionTimestamp != nil && !c.NodeLost:
		c.kill(pod)
	case pod.Status.Phase == corev1.PodPending:
		c.startContainer(pod)
	}
}

// checkAlone checks that no two runs of a claim overlap. A list is of no claim.
func (c *Cluster) checkAlone(pod *corev1.Pod) {
	if VerbOf(&pod.Spec) == string(contract.List) {
		return
	}
	for _, other := range c.AtWork() {
		for _, uid := range c.MembersOf(pod) {
			if slices.Contains(c.MembersOf(other), uid) {
				c.T.Errorf("%s starts while %s runs", pod.Name, other.Name)
			}
		}
	}
}

// RunningPods returns the pods that run. They must not be changed.
func (c *Cluster) RunningPods() []*corev1.Pod {
	return slices.DeleteFunc(shared[*corev1.Pod](c), func(p *corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning })
}

// AtWork returns the pods whose container provisioner runs, also if the pods were deleted or do not
// exist any more. They must not be changed.
func (c *Cluster) AtWork() []*corev1.Pod {
	all := slices.DeleteFunc(c.RunningPods(), func(pod *corev1.Pod) bool {
		image := c.Images[pod.Spec.Containers[0].Image]
		wasStopped := image.Program != nil && pod.DeletionTimestamp != nil && c.containers[pod.UID] == nil // and its kubelet has not said so
		return endOf(pod) != nil || image.Phases != nil || wasStopped
	})
	for _, k := range c.working() {
		if !k.isOver() && !slices.ContainsFunc(all, func(pod *corev1.Pod) bool { return pod.UID == k.Pod.UID }) {
			all = append(all, k.Pod)
		}
	}
	return all
}

func (c *Cluster) runContainer(pod *corev1.Pod) {
	name := pod.Spec.Containers[0].Image
	image, scripted := c.Images[name]
	if !scripted {
		c.T.Fatalf("the test has no script for the image %s", name)
	}
	if c.runElse(pod, image) {
		return
	}
	deadline := c.deadlineOf(pod)
	switch done := c.began(pod).Add(cmp.Or(image.Takes, time.Second)); {
	case done.Before(deadline) && c.due(done):
		c.end(pod, image, c.play(image, pod))
	case c.due(deadline):
		c.terminate(pod, Exit{Code: sigkill}, "DeadlineExceeded")
	}
}

// runElse runs a container that does not do all at once, or has ended. It reports whether it is one.
func (c *Cluster) runElse(pod *corev1.Pod, image Image) bool {
	switch ended := endOf(pod); {
	case ended != nil && image.Sidecar:
		c.endSidecar(pod, ended)
	case ended != nil:
		c.endLingering(pod, ended, image.Lingers)
	case image.Phases != nil:
		c.endPhases(pod, image)
	case image.Program != nil:
		c.runProgram(pod, image.Program, c.due(c.deadlineOf(pod)))
	default:
		return false
	}
	return true
}

// nowAt returns the time by the clock of a pod's node.
func (c *Cluster) nowAt(pod *corev1.Pod) metav1.Time {
	return metav1.NewTime(c.clock.Now().Add(c.Clocks[pod.Spec.NodeName]))
}

// began returns when a pod was started, as its node's clock says now.
func (c *Cluster) began(pod *corev1.Pod) time.Time {
	return pod.Status.StartTime.Add(-c.Clocks[pod.Spec.NodeName])
}

// deadlineOf returns when the kubelet ends the containers of a pod that runs.
func (c *Cluster) deadlineOf(pod *corev1.Pod) time.Time {
	return c.began(pod).Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
}

func (c *Cluster) terminate(pod *corev1.Pod, exit Exit, reason string) {
	c.stopContainer(pod.UID)
	set(c, Kubelet, pod, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason = corev1.PodFailed, reason
		if exit.Code == 0 && reason == "" {
			p.Status.Phase = corev1.PodSucceeded
		}
		if endOf(p) == nil {
			c.setEnd(p, exit)
		}
	})
}

// endLingering ends a pod when its container has ended for a time.
func (c *Cluster) endLingering(pod *corev1.Pod, ended *corev1.ContainerStateTerminated, lingers time.Duration) {
	if c.due(ended.FinishedAt.Add(lingers - c.Clocks[pod.Spec.NodeName])) {
		c.terminate(pod, Exit{Code: ended.ExitCode, Message: ended.Message}, "")
	}
}

// end ends a container, and its pod unless that has a sidecar or ends later.
func (c *Cluster) end(pod *corev1.Pod, image Image, exit Exit) {
	switch {
	case image.Sidecar:
		c.leaveSidecar(pod, exit)
	case image.Lingers > 0:
		c.endContainer(pod, exit)
	default:
		c.terminate(pod, exit, "")
	}
}

// endContainer ends the container of a pod that has not ended yet.
func (c *Cluster) endContainer(pod *corev1.Pod, exit Exit) {
	set(c, Kubelet, pod, func(p *corev1.Pod) { c.setEnd(p, exit) })
}

func (c *Cluster) setEnd(p *corev1.Pod, exit Exit) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: contract.Container, ContainerID: "containerd://" + p.Name,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: exit.Code, Reason: exit.Reason, Message: exit.Message, StartedAt: *cmp.Or(p.Status.StartTime, new(metav1.Time)), FinishedAt: c.nowAt(p),
		}},
	}}
}

// endOf returns how the container of a pod has ended, or nil.
func endOf(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == contract.Container {
			return s.State.Terminated
		}
	}
	return nil
}

// expandFileSystems is the kubelet's part of an expansion, for volumes that pods use.
func (c *Cluster) expandFileSystems() {
	for _, claim := range shared[*corev1.PersistentVolumeClaim](c) {
		if !c.Mounted[claim.Name] ||
			claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] != corev1.PersistentVolumeClaimNodeResizePending {
			continue
		}
		pv, found := sharedOne[*corev1.PersistentVolume](c, "", claim.Spec.VolumeName)
		if !found || pv.Spec.Local == nil && pv.Spec.CSI == nil && pv.Spec.FlexVolume == nil {
			continue
		}
		set(c, Kubelet, claim, func(claim *corev1.PersistentVolumeClaim) {
			claim.Status.Capacity, claim.Status.Conditions, claim.Status.AllocatedResourceStatuses = pv.Spec.Capacity.DeepCopy(), nil, nil
		})
	}
}
