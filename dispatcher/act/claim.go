package act

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// publishResult writes a run's result on the claim. The UID is in the patch, so that another claim
// of the same name does not get it. If an admission webhook or policy refuses the write, perhaps
// for good, an event says so on both and the record counts as published. Otherwise it would be
// held, and nothing retried, until an administrator noticed.
func (a *Actor) publishResult(ctx context.Context, o *observe.Observation, d decide.PublishResult) (Result, error) {
	claim := applycorev1.PersistentVolumeClaim(o.Claim.Name, o.Claim.Namespace).
		WithUID(o.UID).
		WithAnnotations(runs.Report(d.Run.Attempt, d.Run.Outcome, d.Success, o.PV))
	answer, err := a.Client.CoreV1().PersistentVolumeClaims(o.Claim.Namespace).
		Apply(ctx, claim, metav1.ApplyOptions{FieldManager: patch.FieldManager, Force: true})
	if err == nil {
		err = patch.UnlessMissing(patch.MissingKeys("annotation", claim.Annotations, answer.Annotations))
	}
	if patch.IsRefused(err) {
		a.emitUnpublished(o, d, err)
		return learned(observe.Hint{Unpublishable: d.Run.Name, Success: d.Success}), nil
	}
	how, err := patch.EffectOf(err, "annotate the claim %s with the result", o.At)
	if how == patch.Written && err == nil {
		a.Writes.Wrote(answer)
	}
	return Result{}, err
}

// reschedule removes the selected node from the claim as it was observed. The scheduler then
// selects again for the pod that waits for the claim. A claim that has changed since is left as it
// is, and the watch enqueues it.
func (a *Actor) reschedule(ctx context.Context, o *observe.Observation, why string) error {
	err := a.noted(patch.Merge(ctx, a.Client.CoreV1().PersistentVolumeClaims(o.Claim.Namespace), o.Claim,
		patch.Annotate(map[string]any{storagehelpers.AnnSelectedNode: nil})))
	how, err := patch.EffectOf(err, "remove the selected node from the claim %s", o.At)
	if how == patch.Written && err == nil {
		a.emit(o.Claim, nil, corev1.EventTypeNormal, reason.Rescheduling, why+"; the scheduler selects a node again")
	}
	return err
}
