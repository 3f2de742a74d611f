package act

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// patchPV writes on a PV. If the PV has changed since it was observed, that is an error, and the
// UID is retried.
func (a *Actor) patchPV(ctx context.Context, pv *corev1.PersistentVolume, what string, change patch.Fields) error {
	err := a.noted(patch.Merge(ctx, a.Client.CoreV1().PersistentVolumes(), pv, change))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s the PersistentVolume %s: %w", what, pv.Name, err)
	}
	return nil
}

// setFinalizer adds our finalizer to a PV, or removes it and emits an event if its volume is given
// up.
func (a *Actor) setFinalizer(ctx context.Context, o *observe.Observation, d decide.SetFinalizer) error {
	pv := o.PV
	if d.Misnamed {
		pv = o.Misnamed
	}
	if !d.Remove {
		return a.patchPV(ctx, pv, "add the finalizer to",
			patch.Fields{"metadata": patch.Fields{"finalizers": append(slices.Clone(pv.Finalizers), contract.FinalizerStorage)}})
	}
	if d.LeftBehind != "" { // reported before: the PV may vanish with its finalizer, and the answer be lost
		a.emit(pv, claimOf(o), corev1.EventTypeWarning, reason.LeftBehind, "its volume remains in the storage, since "+d.LeftBehind)
	}
	return a.patchPV(ctx, pv, "remove the finalizer from", patch.WithoutFinalizer(pv, contract.FinalizerStorage))
}

// deleteJudgedPV deletes a PV whose volume a run is about to delete, unless it has changed since it
// was judged. Our finalizer keeps it. On a PV that is terminating already this only asks whether it
// has changed. The claim of one that was never bound still exists: Kubernetes binds it also to a
// terminating PV, if its user names that PV (syncUnboundClaim in
// pkg/controller/volume/persistentvolume/pv_controller.go). So the PV is taken from the claim first.
func (a *Actor) deleteJudgedPV(ctx context.Context, o *observe.Observation) (patch.Effect, error) {
	pv, neverBound := o.PV, o.View.Volume.Use == decide.NeverBound
	if neverBound && !pvs.IsTakenFromClaim(pv) {
		answer, err := patch.Merge(ctx, a.Client.CoreV1().PersistentVolumes(), pv, patch.Fields{"spec": patch.Fields{"claimRef": patch.Fields{"uid": pvs.NoClaim}}})
		how, err := patch.EffectOf(a.noted(answer, err), "take the PersistentVolume %s from its claim", pv.Name)
		if how != patch.Written || err != nil {
			return how, err
		}
		pv = answer
	}
	err := a.Client.CoreV1().PersistentVolumes().Delete(ctx, pv.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &pv.UID, ResourceVersion: &pv.ResourceVersion},
	})
	how, err := patch.EffectOf(err, "delete the PersistentVolume %s before its volume", pv.Name)
	if how != patch.Written || err != nil {
		return how, err
	}
	a.Writes.Deleted(pv)
	if neverBound && o.PV.DeletionTimestamp == nil && o.Claim != nil {
		a.emit(o.Claim, o.PV, corev1.EventTypeWarning, reason.VolumeWithdrawn,
			o.View.Volume.Why+". It is deleted with its volume, and the claim is provisioned again")
	}
	return how, nil
}

// deletePV deletes a PV. Our finalizer keeps it until the next action removes that. So if the
// dispatcher is killed between the two, the PV is left terminating, and it is known that its volume
// was deleted.
func (a *Actor) deletePV(ctx context.Context, pv *corev1.PersistentVolume) error {
	err := a.Client.CoreV1().PersistentVolumes().Delete(ctx, pv.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &pv.UID, ResourceVersion: &pv.ResourceVersion},
	})
	if apierrors.IsConflict(err) {
		return nil // it has changed, and is observed again: its policy may be Retain now
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the PersistentVolume %s: %w", pv.Name, err)
	}
	a.Writes.Deleted(pv)
	return nil
}

// setPVCapacity writes on the PV how large its volume is now, unless the PV has changed since it
// was observed. The observation has shown that the volume is larger than the PV says.
func (a *Actor) setPVCapacity(ctx context.Context, o *observe.Observation, run decide.Run) error {
	err := a.noted(patch.Merge(ctx, a.Client.CoreV1().PersistentVolumes(), o.PV,
		patch.Fields{"spec": patch.Fields{"capacity": patch.Fields{"storage": run.Reached(run.Outcome).String()}}}))
	_, err = patch.EffectOf(err, "set the capacity of the PersistentVolume %s", o.PV.Name)
	return err
}

// keepVolume notes on a Job of the UID which PV may stand for its volume, or sets the policy of the
// UID's own PV to Retain.
func (a *Actor) keepVolume(ctx context.Context, o *observe.Observation, d decide.KeepVolume) error {
	job := o.Jobs[d.Run.Name]
	if job == nil {
		err := a.patchPV(ctx, o.PV, "set the policy to Retain of", patch.Fields{"spec": patch.Fields{"persistentVolumeReclaimPolicy": corev1.PersistentVolumeReclaimRetain}})
		if err == nil && o.PV.DeletionTimestamp == nil { // a terminating PV goes, with an event that says what stays
			a.emit(o.PV, claimOf(o), corev1.EventTypeWarning, reason.VolumeInDoubt, reason.KeptByPolicy.After("%s: ", o.View.WhyRival).String())
		}
		return err
	}
	how, err := a.patchRecord(ctx, o, job, func(r *jobs.Record) { r.Rival = o.Rival })
	if err == nil && how == patch.Written {
		a.emit(job, claimOf(o), corev1.EventTypeWarning, reason.VolumeInDoubt, reason.KeptOnRecord(job.Namespace, job.Name, string(o.UID), jobs.AnnForget+"="+string(o.UID)).
			After("%s: ", cmp.Or(o.View.WhyRival, o.View.Volume.Why)).String())
	}
	return err
}

// createPV creates the PV that a container describes. Whether the run is a success is known now. If
// the PV exists already, the next observation finds it.
func (a *Actor) createPV(ctx context.Context, o *observe.Observation, run decide.Run) (Result, error) {
	job := o.Jobs[run.Name]
	if why := o.Forged[run.Name]; why != "" {
		run.WhyNoPV = why
		a.reportRun(o, decide.RecordOutcome{Run: run})
		return learned(observe.Hint{NoPVOf: run.Name, WhyNoPV: why}), nil
	}
	pv, refused := observe.DescribedPV(job, run.Described, a.Allowed[job.Namespace])
	if refused != "" {
		return learned(observe.Hint{NoPVOf: run.Name, WhyNoPV: refused}), nil
	}
	created, err := a.Client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{FieldManager: patch.FieldManager})
	switch {
	case err == nil:
		o.PV = created
		a.reportRun(o, decide.RecordOutcome{Run: run, Success: true})
		return Result{}, nil
	case apierrors.IsAlreadyExists(err):
		return Result{}, nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err): // the image described it, so the run has failed
		run.WhyNoPV = "the API server refused the PersistentVolume that the container describes: " + err.Error()
		a.reportRun(o, decide.RecordOutcome{Run: run})
		return learned(observe.Hint{NoPVOf: run.Name, WhyNoPV: run.WhyNoPV}), nil
	default:
		return Result{}, fmt.Errorf("create the PersistentVolume that the Job %s/%s describes: %w", job.Namespace, job.Name, err)
	}
}
