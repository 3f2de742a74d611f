package runs

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// IsPodOf reports whether a pod is that of a Job, and not of an earlier one of its name. The API
// server's default for Jobs is to delete them with the propagation policy Orphan, which leaves the
// pod behind. The garbage collector removes its owner, the Job controller counts it no more, and
// its container runs on. The label that the Job controller has put on it still names its Job.
func IsPodOf(pod *corev1.Pod, job *batchv1.Job) bool {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return owner.UID == job.UID
	}
	return pod.Labels[batchv1.ControllerUidLabel] == string(job.UID)
}

// PodsOf returns those of some pods that are a Job's. It reuses their slice.
func PodsOf(job *batchv1.Job, pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return !IsPodOf(pod, job) })
}

// IsLeft reports whether a pod was left behind by its Job, which is being deleted: nothing deletes
// it with the Job any more.
func IsLeft(pod *corev1.Pod, job *batchv1.Job) bool {
	return job.DeletionTimestamp != nil && metav1.GetControllerOfNoCopy(pod) == nil
}

// IsLeftGated reports whether a pod waits for the dispatcher's gate although its Job was deleted
// without it. The API server deletes a Job in this way unless it is asked for another, and nothing
// else knows the pod then. It once took a slot for ever, and no event said so
// (TestAGatedPodThatIsLeftAloneIsReportedUntilItIsDeleted).
func IsLeftGated(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && hasGate(pod) && metav1.GetControllerOfNoCopy(pod) == nil
}

// LeftGatedNote says what such a pod waits for, and what an administrator can do. It follows the
// name of the Job.
func LeftGatedNote(pod *corev1.Pod) reason.Note {
	return reason.Note{Cause: "it was deleted without its pod. The pod still has its scheduling gate, and no controller starts or deletes it", Remedy: DeleteCommand(pod)}
}

// LeftStuck returns why a pod whose Job no longer exists may still run although it was deleted, nil
// if nothing is to be reported yet. It also returns when to recheck, zero if the pod's own events
// tell. until and lost say when it ends without a report of its node. Such a pod once held a slot
// for ever, and no event said so: an administrator had removed the finalizers of its Job
// (TestPodWithoutAJobOnALostNodeHoldsNoSlotForEver).
func LeftStuck(pod *corev1.Pod, until time.Time, lost string, now time.Time) (*Stuck, time.Time) {
	job := pod.Labels[batchv1.JobNameLabel]
	switch {
	case IsLeftGated(pod):
		return &Stuck{Reason: reason.RunNotConfirmed, Note: LeftGatedNote(pod).After("the Job %s: ", job)}, time.Time{}
	case pod.DeletionTimestamp == nil:
		return nil, time.Time{}
	case lost != "":
		return &Stuck{Reason: reason.WaitingForNode, Note: reason.LostNode("the pod "+pod.Name, lost)}, now.Add(NodeLostAfter)
	case !until.IsZero():
		return &Stuck{Reason: reason.WaitingForNode, Note: reason.Note{Cause: reason.EndUnreported(job, until)}}, until
	}
	t, at := stuckTerminating(pod, now)
	if t != nil {
		t.Note = t.Note.After("the Job %s no longer exists: ", job)
	}
	return t, at
}

// DeleteCommand returns the command that deletes a pod.
func DeleteCommand(pod *corev1.Pod) string {
	return fmt.Sprintf("kubectl -n %s delete pod %s", pod.Namespace, pod.Name)
}

// stuckGated returns a Stuck for a gated pod that its Job has left behind, else nil: the dispatcher
// itself holds it back. It confirms no Job that is being deleted, and may delete no pod.
func stuckGated(job *batchv1.Job, pod *corev1.Pod) *Stuck {
	if !IsLeft(pod, job) {
		return nil
	}
	return &Stuck{Reason: reason.RunNotConfirmed, Unstarted: true, Note: LeftGatedNote(pod)}
}
