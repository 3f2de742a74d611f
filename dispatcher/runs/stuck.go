package runs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// Stuck is why a Job that has not ended makes no progress.
type Stuck struct {
	// Reason for an event, Kubernetes' own where there is one.
	Reason string
	Note   reason.Note
	// Unstarted is set if no container of the Job has ever run, so that it cannot have made
	// anything.
	Unstarted bool
	// NodeLost is set if the node of a deleted pod does not confirm that the pod has ended.
	NodeLost bool
	// GiveUp is set if waiting cannot help, so that the Job is to be deleted.
	GiveUp bool
	// Node is that of the pod, whose kubelet says so. It is empty if its pod has no node yet.
	Node string
}

// Cause names why Kubernetes says that the run cannot start: other runs with the same config and
// nodes cannot start either. It is empty if nothing says so, if a queue or a gate holds the run
// back, or if a container of it has started.
func (s *Stuck) Cause() string {
	switch {
	case s == nil || !s.Unstarted || s.GiveUp:
		return ""
	case s.Reason == reason.JobSuspended || s.Reason == reason.RunNotConfirmed || s.Reason == corev1.PodReasonSchedulingGated:
		return ""
	case s.Reason == imagePullBackOff:
		return errImagePull // the kubelet says the two in turn
	default:
		return s.Reason
	}
}

// Reasons of the kubelet for a container that waits for its image.
const (
	errImagePull     = "ErrImagePull"
	imagePullBackOff = "ImagePullBackOff"
)

// How long a Job may take before it counts as stuck. An API server or a kubelet under load needs a
// few seconds for what it will do anyway.
const (
	stuckAfter = 10 * time.Second
	// NodeLostAfter is when a lost node is reported, and looked at again. A pod that is still terminating this long after its grace period is on a node that does not
	// answer.
	NodeLostAfter = 30 * time.Second
)

// StuckOf returns why an unfinished Job makes no progress, or nil. It also returns when to recheck,
// zero if a change enqueues the UID. warning is the newest event about the Job or its pod. A result
// without a Note asks for one. A Job whose container has not started for the whole time that it may
// run is given up.
func StuckOf(job *batchv1.Job, pods []*corev1.Pod, warning *Warning, now time.Time) (*Stuck, time.Time) {
	t, recheck := stuckOf(job, pods, warning, now)
	if t == nil {
		return nil, recheck
	}
	last := job.CreationTimestamp.Time
	if pod := NewestPod(pods); pod != nil {
		last, t.Node = pod.CreationTimestamp.Time, pod.Spec.NodeName
	}
	if !t.Unstarted || job.Spec.Template.Spec.ActiveDeadlineSeconds == nil {
		return t, recheck
	}
	last = last.Add(deadlineOf(job.Spec.Template.Spec.ActiveDeadlineSeconds) + time.Minute)
	switch {
	case !now.Before(last):
		t.GiveUp = true
	case recheck.IsZero() || last.Before(recheck):
		recheck = last
	}
	return t, recheck
}

func stuckOf(job *batchv1.Job, pods []*corev1.Pod, warning *Warning, now time.Time) (*Stuck, time.Time) {
	pod := NewestPod(pods)
	switch {
	case pod == nil && job.DeletionTimestamp != nil:
		return nil, noPodAfter(job, pods)
	case job.Spec.Suspend != nil && *job.Spec.Suspend:
		return stuckSuspended(), time.Time{}
	case pod == nil:
		return stuckWithoutCause(job.CreationTimestamp.Time, "its pod could not be created", withoutPodName(warning, job.Name), now)
	case pod.DeletionTimestamp != nil:
		return stuckTerminating(pod, now)
	case hasGate(pod):
		return stuckGated(job, pod), time.Time{}
	case pod.Status.Phase != corev1.PodPending:
		return nil, time.Time{}
	}
	return stuckPending(pod, warning, now)
}

// stuckPending returns why no container of a pod has started yet, or nil if an init container is at
// work.
func stuckPending(pod *corev1.Pod, warning *Warning, now time.Time) (*Stuck, time.Time) {
	if t := stuckUnscheduled(pod); t != nil {
		return t, time.Time{}
	}
	if t := stuckUnstarted(pod); t != nil {
		return t, time.Time{}
	}
	if isInitialising(pod) {
		return nil, time.Time{}
	}
	return stuckWithoutCause(pod.CreationTimestamp.Time, "its pod does not start on the node "+pod.Spec.NodeName, warning, now)
}

// isInitialising reports whether any container of a pod has been created.
func isInitialising(pod *corev1.Pod) bool {
	return slices.ContainsFunc(allStatuses(pod), func(s corev1.ContainerStatus) bool {
		return s.ContainerID != "" || s.State.Running != nil || s.State.Terminated != nil
	})
}

// stuckWithoutCause returns a Stuck whose cause only an event says. Without an event it has no Note
// and is not reported.
func stuckWithoutCause(since time.Time, what string, warning *Warning, now time.Time) (*Stuck, time.Time) {
	if at := since.Add(stuckAfter); now.Before(at) {
		return nil, at
	}
	t := &Stuck{Unstarted: true}
	if warning != nil {
		t.Reason, t.Note.Cause = warning.Reason, what+": "+warning.Note
	}
	return t, now.Add(stuckAfter)
}

// withoutPodName removes the random end of the name of a pod that was refused. Each attempt has
// another name, so that the same cause would be reported as a new one each time.
func withoutPodName(w *Warning, job string) *Warning {
	if w == nil {
		return nil
	}
	pod := regexp.MustCompile(regexp.QuoteMeta(job) + "-[a-z0-9]{5}\\b")
	return &Warning{Reason: w.Reason, Note: pod.ReplaceAllString(w.Note, job)}
}

// stuckSuspended returns a Stuck for a suspended Job. Kubernetes does not enforce the Job's own
// deadline while it is suspended.
func stuckSuspended() *Stuck {
	return &Stuck{Reason: reason.JobSuspended, Unstarted: true, Note: reason.Note{Cause: "the Job is suspended, by a queue without room for it or by a user"}}
}

// stuckUnscheduled quotes the scheduler, and adds the selector that the scheduler's message lacks.
func stuckUnscheduled(pod *corev1.Pod) *Stuck {
	for _, c := range pod.Status.Conditions {
		wasGated := c.Reason == corev1.PodReasonSchedulingGated && len(pod.Spec.SchedulingGates) == 0 // the scheduler has yet to look at it
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || wasGated {
			continue
		}
		note := "no node fits its pod: " + c.Message
		if len(pod.Spec.NodeSelector) > 0 {
			note += "; its node selector is " + selectorText(pod.Spec.NodeSelector)
		}
		return &Stuck{Reason: c.Reason, Note: reason.Note{Cause: note}, Unstarted: true}
	}
	return nil
}

func selectorText(selector map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		pairs = append(pairs, key+"="+selector[key])
	}
	return strings.Join(pairs, ",")
}

// stuckUnstarted quotes the reason why the kubelet does not start a container: an image that cannot
// be pulled, a Secret that does not exist or lacks a key.
func stuckUnstarted(pod *corev1.Pod) *Stuck {
	if HasStarted([]*corev1.Pod{pod}) {
		return nil // it is at work, and what is beside it is not waited for
	}
	for _, s := range allStatuses(pod) {
		w := s.State.Waiting
		if w == nil || w.Reason == "" || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing" {
			continue
		}
		return &Stuck{Reason: w.Reason, Note: reason.Note{Cause: fmt.Sprintf("its container %s does not start: %s", s.Name, w.Message)}, Unstarted: true}
	}
	return nil
}

// stuckTerminating returns a Stuck for a pod that is terminating for too long: its node does not
// answer. That nothing runs there any more is known only when the node is back, or when a person
// has made sure that it is off.
func stuckTerminating(pod *corev1.Pod, now time.Time) (*Stuck, time.Time) {
	if at := pod.DeletionTimestamp.Add(NodeLostAfter); now.Before(at) {
		return nil, at
	}
	if isForceDeleted(pod) {
		return &Stuck{Reason: reason.WaitingForNode, NodeLost: true, GiveUp: true, Note: reason.Note{Cause: fmt.Sprintf(
			"its pod %s was force-deleted, and the node %s does not confirm that it has ended", pod.Name, pod.Spec.NodeName)}}, time.Time{}
	}
	return &Stuck{Reason: reason.WaitingForNode, NodeLost: true, Note: reason.Note{
		Cause:  fmt.Sprintf("its pod %s was deleted, but the node %s does not confirm that it has ended", pod.Name, pod.Spec.NodeName),
		Remedy: reason.BringBack(pod.Spec.NodeName),
	}}, time.Time{}
}
