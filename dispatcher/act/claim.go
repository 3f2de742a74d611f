package act

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// publishResult writes a run's result on the claim. The UID is in the patch, so that another claim of the same name
// does not get it. If an admission webhook or policy refuses the write, perhaps for good, an event on the Job says so
// and the record counts as published. Otherwise it would be held, and nothing retried, until an administrator
// noticed.
func (a *Actor) publishResult(ctx context.Context, o *observe.Observation, d decide.PublishResult) (Result, error) {
	claim := applycorev1.PersistentVolumeClaim(o.Claim.Name, o.Claim.Namespace).
		WithUID(o.UID).
		WithAnnotations(observe.Result(d.Run, d.Success, o.PV))
	_, err := a.Client.CoreV1().PersistentVolumeClaims(o.Claim.Namespace).
		Apply(ctx, claim, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if IsRefused(err) {
		a.emitUnpublished(o, d, err)
		return learned(observe.Hint{Unpublishable: d.Run.Name}), nil
	}
	_, err = outcomeOf(err, "write the result on the claim %s", o.At)
	return Result{}, err
}

// reschedule removes the selected node from the claim as it was observed. The scheduler then selects again for the
// pod that waits for the claim. A claim that has changed since is left as it is, and the watch enqueues it.
func (a *Actor) reschedule(ctx context.Context, o *observe.Observation, why string) error {
	err := mergePatch(ctx, a.Client.CoreV1().PersistentVolumeClaims(o.Claim.Namespace), o.Claim,
		annotate(map[string]any{storagehelpers.AnnSelectedNode: nil}))
	how, err := outcomeOf(err, "take the selected node off the claim %s", o.At)
	if how == written && err == nil {
		a.emit(o.Claim, nil, corev1.EventTypeNormal, reason.Rescheduling, why+"; the scheduler is to choose a node again")
	}
	return err
}

// createPV creates the PV that a container describes. If it exists already, the next observation finds it.
func (a *Actor) createPV(ctx context.Context, o *observe.Observation, run decide.Run) (Result, error) {
	job := o.Jobs[run.Name]
	pv, refused := observe.DescribedPV(job, o.Pods[run.Name], a.Allowed[job.Namespace])
	if refused != "" {
		return learned(observe.Hint{RefusedPV: run.Name, RefusedWhy: refused}), nil
	}
	_, err := a.Client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{FieldManager: fieldManager})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return Result{}, nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err): // the image described it, so the run has failed
		return learned(observe.Hint{RefusedPV: run.Name, RefusedWhy: "the API server refused the PersistentVolume that it describes: " + err.Error()}), nil
	default:
		return Result{}, fmt.Errorf("write the PersistentVolume that the Job %s/%s describes: %w", job.Namespace, job.Name, err)
	}
}
