package run

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// removal is what is known beside the PV: a volume that this run made, and that no claim was ever
// bound to a PV.
type removal struct {
	id   string
	undo bool
}

// delete removes what was made for the claim. An undo is requested where no PV was ever created, or
// where no claim was ever bound to the PV, which is being deleted then. If any other PV exists, an
// overlapping run created it, and its volume is in use.
func (r *Runner) delete(ctx context.Context, task input.Task) (Report, error) {
	if task.Request.Undo {
		if err := r.checkNoPV(ctx, task.PV); err != nil {
			return Report{}, err
		}
	}
	message, err := r.remove(ctx, task, removal{undo: task.Request.Undo})
	return Report{Message: message}, err
}

// checkNoPV returns an error if a PV of this name exists that is not the one that is taken back.
func (r *Runner) checkNoPV(ctx context.Context, given *corev1.PersistentVolume) error {
	there, err := r.store.Get(ctx, given.Name)
	switch {
	case err != nil:
		return err
	case there == nil, there.DeletionTimestamp != nil && there.UID == given.UID:
		return nil
	default:
		return fmt.Errorf("PV %s exists, so its volume may be in use", given.Name)
	}
}

// remove deletes what provision made: the volume with its export, then the Secret. The dispatcher
// deletes the PV. On an undo and on a rollback there is no record on a PV. It returns what to
// report.
func (r *Runner) remove(ctx context.Context, task input.Task, what removal) (string, error) {
	record, err := pv.ReadRecord(task.PV, pv.Record{Access: task.Volume.Access})
	if err != nil {
		return "", err
	}
	left, err := r.keeper.Remove(ctx, target(task, record, what))
	message := r.report(ctx, left)
	if err != nil {
		return "", err
	}
	r.log.InfoContext(ctx, "Volume was deleted", "volume", record.VolumeID, "claim", task.Request.UID)
	return message, r.store.DeleteSecret(ctx, task.Secret) // and not the one that the PV names, which may be another claim's
}

func target(task input.Task, record pv.Record, what removal) volume.Target {
	return volume.Target{
		UID:        task.Request.UID,
		ClusterUID: task.Request.ClusterUID,

		ID:     cmp.Or(record.VolumeID, what.id),
		Noted:  record.VolumeID != "",
		Name:   task.Volume.Name,
		Place:  record.Place,
		Adopt:  task.Volume.Adopt,
		Before: task.PV.CreationTimestamp.Time,
		Access: record.Access,
		Undo:   what.undo,
		Only:   task.Request.ListedVolume,
	}
}
