package act

import (
	"context"
	"time"

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
// of each claim that it serves, as it was judged: while a PV that is not terminating might be bound
// or handed on, no container may delete its volume. It stops at the first PV that has changed.
func (a *Actor) Confirm(ctx context.Context, o *observe.Observation, run decide.Run, members ...*observe.Observation) (Result, error) {
	result, err := a.confirm(ctx, o, run, members)
	return a.unlessRefused(ctx, o, decide.Confirm{Run: run}, result, err)
}

// recheckChanged is how soon a run is judged again, one of whose PVs has changed. The watch
// enqueues the claim of that PV, which need not be the one that confirms: a batch of deletes once
// waited for its Job's deadline (TestABatchOfDeletesIsConfirmedAfterAConflict).
const recheckChanged = 200 * time.Millisecond

func (a *Actor) confirm(ctx context.Context, o *observe.Observation, run decide.Run, members []*observe.Observation) (Result, error) {
	pod, job := runs.GatedPod(o.Pods[run.Name]), o.Jobs[run.Name]
	if how, err := a.noteConfirmed(ctx, job, pod); err != nil || how != patch.Written {
		return Result{}, err
	}
	if run.Verb == contract.Delete && !run.IsUndo() {
		for _, member := range members {
			if how, err := a.deleteJudgedPV(ctx, member); err != nil || how != patch.Written {
				return Result{RequeueAfter: recheckChanged}, err
			}
		}
	}
	klog.FromContext(ctx).V(2).Info("Confirming run", "claim", o.At, "uid", o.UID, "pod", klog.KObj(pod))
	return Result{}, a.removeGate(ctx, pod)
}

// noteConfirmed writes on a Job which pod of it is confirmed, before that can run. The Job controller
// writes on the Job at the same time, so it is written whatever has changed.
func (a *Actor) noteConfirmed(ctx context.Context, job *batchv1.Job, pod *corev1.Pod) (patch.Outcome, error) {
	if job.Annotations[jobs.AnnConfirmed] == string(pod.UID) {
		return patch.Written, nil
	}
	err := a.noted(patch.Strategic(ctx, a.Client.BatchV1().Jobs(job.Namespace), job, patch.Untracked(patch.Annotate(map[string]string{jobs.AnnConfirmed: string(pod.UID)}))))
	return patch.OutcomeOf(err, "note the confirmed pod on the Job %s/%s", job.Namespace, job.Name)
}

// removeGate removes the dispatcher's scheduling gate from a pod, and no other controller's.
func (a *Actor) removeGate(ctx context.Context, pod *corev1.Pod) error {
	err := a.noted(patch.Strategic(ctx, a.Client.CoreV1().Pods(pod.Namespace), pod, patch.Untracked(patch.DropGate(jobs.GateConfirm))))
	_, err = patch.OutcomeOf(err, "remove the scheduling gate of the pod %s/%s", pod.Namespace, pod.Name)
	return err
}
