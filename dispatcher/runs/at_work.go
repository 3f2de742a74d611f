package runs

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// HoldsSlot reports whether a container of a Job may be at work now or later, init containers
// included. One that cannot start may start at any moment. Of a pod that has vanished its outcome
// says until when. A Job whose pods were deleted may get another. A queue once suspended a Job at
// work and resumed it later, and two were at work where one may be
// (TestMaxParallelCountsAJobThatIsSuspendedAndResumed).
func HoldsSlot(job *batchv1.Job, pods []*corev1.Pod, now time.Time) bool {
	if slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return IsAtWork(pod, now) }) {
		return true
	}
	if head := jobs.HeadOf(job); now.Before(head.MayRunUntil) || HasVanished(job, pods) && head.Unrecorded > 0 {
		return true
	}
	stays := func(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil }
	return !slices.ContainsFunc(pods, stays) && !HasEnded(job, pods, now)
}

// IsAtWork reports whether the container of a pod may be at work now or later. Without a report
// from its node that it has ended it may until the pod's own deadline.
func IsAtWork(pod *corev1.Pod, now time.Time) bool {
	may, _ := MayRun(pod, now)
	return may && !HasContainerEnded(pod)
}

// HasContainerEnded reports whether a pod's node says that the container "provisioner" has ended.
// The pod's phase follows when its sidecars have ended, and its sandbox and network have been
// removed. Until then the end is not final: a node that starts anew may run a container again. So
// this frees a slot, and nothing else is started for the claim.
func HasContainerEnded(pod *corev1.Pod) bool { return terminatedState(pod) != nil }

// IsOver reports whether no container of a pod can be running any more, as its node has said, or
// since it never had one. Of a pod that was deleted by force the node says nothing more than that
// the container "provisioner" has ended.
func IsOver(pod *corev1.Pod) bool {
	return isDeletedUnscheduled(pod) || hasPodEnded(pod) && !isEndUnreported(pod) || isForceDeleted(pod) && HasContainerEnded(pod)
}

// HasReportedEnd reports whether a Job alone shows that no container of it can be running any more.
// It is Complete or Failed, and each recorded outcome rests on a report from its node.
func HasReportedEnd(job *batchv1.Job) bool {
	return IsFinished(job) && jobs.HeadOf(job).MayRunUntil.IsZero()
}
