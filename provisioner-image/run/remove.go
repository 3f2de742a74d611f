package run

import (
	"context"
	"fmt"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// removal is what is known beside the PV: a volume that this run made, and that there never was a PV.
type removal struct {
	id   string
	undo bool
}

// delete removes what was made for the claim. An undo is requested where no PV was ever created. If a PV exists all
// the same, an overlapping run created it, and its volume is in use.
func (r *Runner) delete(ctx context.Context, task input.Task) error {
	if task.Request.Undo {
		if err := r.checkNoPV(ctx, task.PV.Name); err != nil {
			return err
		}
	}
	return r.remove(ctx, task, removal{undo: task.Request.Undo})
}

func (r *Runner) checkNoPV(ctx context.Context, name string) error {
	there, err := r.store.Get(ctx, name)
	if err != nil {
		return err
	}
	if there != nil {
		return fmt.Errorf("PV %s is there, so that the volume is in use", name)
	}
	return nil
}

// remove deletes what provision made: the volume with its export, then the Secret. The dispatcher deletes the PV. On
// an undo and on a rollback there is no record on a PV.
func (r *Runner) remove(ctx context.Context, task input.Task, what removal) error {
	record, err := pv.ReadRecord(task.PV, pv.Record{Access: task.Volume.Access, Secret: task.Secret})
	if err != nil {
		return err
	}
	if record.VolumeID == "" {
		record.VolumeID = what.id
	}
	err = r.keeper.Remove(ctx, volume.Target{
		UID:    task.Request.UID,
		ID:     record.VolumeID,
		Access: record.Access,
		Undo:   what.undo,
	})
	if err != nil {
		return err
	}
	r.log.InfoContext(ctx, "Volume was deleted", "volume", record.VolumeID, "claim", task.Request.UID)
	return r.store.DeleteSecret(ctx, record.Secret)
}
