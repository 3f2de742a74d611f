package run

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// findSource finds the volume to clone by the PV that the source claim is bound to, which no user
// can write. What a claim says about volumes is never read.
func (r *Runner) findSource(ctx context.Context, task *input.Task) error {
	from := task.Request.Source
	if from == nil {
		return nil
	}
	there, err := r.store.Get(ctx, from.PVName)
	if err != nil {
		return err
	}
	if there == nil {
		return cannotClone(from, "its PersistentVolume %s does not exist", from.PVName)
	}
	if !isBoundTo(there, from) {
		return cannotClone(from, "its PersistentVolume %s is not bound to it", from.PVName)
	}
	if class := there.Spec.StorageClassName; class != task.Request.Class {
		return cannotClone(from, "its volume has the storage class %q; use the same class", class)
	}
	record, err := pv.ReadRecord(there, pv.Record{})
	if err != nil {
		return err
	}
	if record.VolumeID == "" {
		return cannotClone(from, "its volume was not provisioned by this provisioner")
	}
	task.Volume.Source = volume.Source{VolumeID: record.VolumeID, Place: record.Place, UID: there.Annotations[contract.AnnClaimUID]}
	return r.keeper.CheckSource(ctx, task.Volume)
}

// isBoundTo reports whether the PV is bound to the source claim. It compares UIDs, since a claim
// can be deleted and another one of the same name created.
func isBoundTo(there *corev1.PersistentVolume, from *contract.Source) bool {
	ref := there.Spec.ClaimRef
	return ref != nil && ref.Namespace == from.Namespace && ref.Name == from.Name &&
		from.UID != "" && string(ref.UID) == from.UID
}

func cannotClone(from *contract.Source, format string, args ...any) error {
	return &input.Error{
		Code: contract.ExitBadRequest,
		Err:  fmt.Errorf("claim %s/%s cannot be cloned: %s", from.Namespace, from.Name, fmt.Sprintf(format, args...)),
	}
}
