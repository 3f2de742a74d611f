package act

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Confirm lets the pod of a gated Job be scheduled. A run that deletes volumes first deletes the PV
// of each claim that it serves, as it was judged. As long as such a PV is not terminating it might
// be bound or handed on, and no container may delete its volume. Confirm stops at the first PV that
// has changed: that change enqueues its claim, which says what it is now.
func (a *Actor) Confirm(ctx context.Context, run decide.Run, members ...*observe.Observation) error {
	o := members[0]
	pod, job := runs.GatedPod(o.Pods[run.Name]), o.Jobs[run.Name]
	if how, err := a.noteConfirmed(ctx, job, pod); err != nil || how != patch.Written {
		return err
	}
	if run.Verb == contract.Delete && !run.IsUndo() {
		for _, member := range members {
			if how, err := a.deleteJudgedPV(ctx, member); err != nil || how != patch.Written {
				return err
			}
		}
	}
	klog.FromContext(ctx).V(2).Info("Confirming run", "claim", o.At, "uid", o.UID, "pod", klog.KObj(pod))
	return a.removeGate(ctx, pod)
}

// noteConfirmed writes on a Job which pod of it is confirmed, before that can run. The Job controller
// writes on the Job at the same time, so it is written whatever has changed.
func (a *Actor) noteConfirmed(ctx context.Context, job *batchv1.Job, pod *corev1.Pod) (patch.Effect, error) {
	if job.Annotations[jobs.AnnConfirmed] == string(pod.UID) {
		return patch.Written, nil
	}
	err := a.noted(patch.Strategic(ctx, a.Client.BatchV1().Jobs(job.Namespace), job, patch.Untracked(patch.Annotate(map[string]string{jobs.AnnConfirmed: string(pod.UID)}))))
	return patch.EffectOf(err, "note the confirmed pod on the Job %s/%s", job.Namespace, job.Name)
}

// removeGate removes the dispatcher's scheduling gate from a pod, and no other controller's.
func (a *Actor) removeGate(ctx context.Context, pod *corev1.Pod) error {
	err := a.noted(patch.Strategic(ctx, a.Client.CoreV1().Pods(pod.Namespace), pod, patch.Untracked(patch.DropGate(jobs.GateConfirm))))
	_, err = patch.EffectOf(err, "remove the scheduling gate of the pod %s/%s", pod.Namespace, pod.Name)
	return err
}
