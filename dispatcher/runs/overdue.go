package runs

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// OverdueOn returns the node whose kubelet alone says, or leaves open, that a container of a Job is
// still at work although the Job is past its deadline. It is empty if there is none. It counts no
// time that a kubelet can write: not the start of a pod, and not its deletion, since a kubelet
// deletes its pods with any grace period.
func OverdueOn(job *batchv1.Job, pods []*corev1.Pod, now time.Time) string {
	for _, pod := range pods {
		if IsAtWork(pod, now) && IsOverdue(pod, now) {
			return pod.Spec.NodeName
		}
	}
	began := job.CreationTimestamp.Time
	if job.Status.StartTime != nil {
		began = job.Status.StartTime.Time
	}
	latest := began.Add(deadlineOf(job.Spec.ActiveDeadlineSeconds) + defaultGracePeriod + clockSkew)
	if now.Before(latest) || !now.Before(jobs.HeadOf(job).MayRunUntil) {
		return ""
	}
	for _, uid := range jobs.UIDs(job) {
		if recorded := jobs.RecordOf(job, uid).Recorded; recorded != nil && now.Before(recorded.MayRunUntil) {
			return recorded.Node
		}
	}
	return ""
}

// IsOverdue reports whether a pod has had all the time that its Job allows, the time at its gate
// included, and its grace period.
func IsOverdue(pod *corev1.Pod, now time.Time) bool {
	return !now.Before(pod.CreationTimestamp.Add(jobs.Slack + deadlineOf(pod.Spec.ActiveDeadlineSeconds) + gracePeriodOf(pod)))
}
