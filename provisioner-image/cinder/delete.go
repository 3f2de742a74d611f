package cinder

import (
	"context"
	"fmt"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Delete releases the volume, deletes it and waits until it no longer exists.
func (b *Backend) Delete(ctx context.Context, v volume.Volume, a volume.Access) error {
	v, err := b.reclaim(ctx, v, a)
	if err == nil && v.Status == inUse {
		err = inUseBy(v, "an unknown client")
	}
	if err == nil && v.Status != deleting {
		err = b.requestDelete(ctx, v)
	}
	if err == nil {
		_, err = b.poll(ctx, v, deleting, isDeleted)
	}
	return err
}

// reclaim waits until Cinder is no longer working on the volume, and removes its export. The volume was
// found some time ago, at the beginning of a batch: it may be another claim's by now, which has adopted
// it, and then it is left as it is.
func (b *Backend) reclaim(ctx context.Context, v volume.Volume, a volume.Access) (volume.Volume, error) {
	of := v.UID()
	v, err := b.cinder.Get(ctx, v.ID)
	if err == nil {
		v, err = b.untilIdle(ctx, v)
	}
	if err == nil {
		err = checkStillOf(of, v)
	}
	if err == nil {
		v, err = b.release(ctx, v, a)
	}
	if err == nil {
		err = checkStillOf(of, v)
	}
	return v, err
}

func checkStillOf(uid string, v volume.Volume) error {
	if v.UID() == uid {
		return nil
	}
	return inUseBy(v, fmt.Sprintf("the claim with the UID %q in its metadata", v.UID()))
}

// isDeleted never returns true: the wait ends with Cinder's "not found". A volume that leaves the
// status deleting was not deleted: it has a snapshot or a clone, or the storage failed.
func isDeleted(v volume.Volume) (bool, error) {
	if v.Status == deleting {
		return false, nil
	}
	return false, &volume.Error{
		Kind:  volume.Busy,
		Doing: "delete volume " + v.ID,
		Said:  fmt.Sprintf("the storage did not delete it, and its status is %q; a snapshot or a clone may depend on it", v.Status),
	}
}
