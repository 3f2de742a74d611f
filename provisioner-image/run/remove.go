package run

import (
	"context"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/order"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// remove takes back what provision made: the volume with its export, then the Secret. The PV is the
// dispatcher's to remove. On an undo and on a roll back there never was a PV, so that nothing is noted
// on it; a volume made by this very run is named by id.
func (r *Runner) remove(ctx context.Context, o order.Order, id string) error {
	notes, err := pv.ReadRecord(o.PV, pv.Record{Connector: o.Volume.Connector, Secret: o.Secret})
	if err != nil {
		return err
	}
	if notes.VolumeID == "" {
		notes.VolumeID = id
	}
	err = r.keeper.Remove(ctx, volume.Target{
		UID:       o.Request.UID,
		ID:        notes.VolumeID,
		Connector: notes.Connector,
	})
	if err != nil {
		return err
	}
	r.log.InfoContext(ctx, "the volume is gone", "volume", notes.VolumeID, "claim", o.Request.UID)
	return r.store.DeleteSecret(ctx, notes.Secret)
}
