package run

import (
	"context"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// findOriginal looks whether the volume to adopt is a copy that carries the UID of another claim,
// such as a restored backup. It is one if the PV of that claim stands for another volume.
func (r *Runner) findOriginal(ctx context.Context, task *input.Task) error {
	if task.Volume.Adopt == "" {
		return nil
	}
	uid, err := r.keeper.OwnerOf(ctx, task.Volume.Adopt)
	if err != nil || uid == "" || uid == task.Request.UID {
		return volume.IgnoreGone(err)
	}
	original, err := r.volumeOf(ctx, uid)
	if err == nil && original != "" && original != task.Volume.Adopt {
		task.Volume.CopyOf = uid
	}
	return err
}

// volumeOf returns the volume that the PV of the claim with this UID stands for, or "".
func (r *Runner) volumeOf(ctx context.Context, uid string) (string, error) {
	there, err := r.store.Get(ctx, contract.PVName(uid))
	if err != nil || there == nil || there.Annotations[contract.AnnClaimUID] != uid {
		return "", err
	}
	record, err := pv.ReadRecord(there, pv.Record{})
	return record.VolumeID, err
}
