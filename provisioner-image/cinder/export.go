package cinder

import (
	"context"
	"fmt"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Export reserves the volume, unless an earlier run did, and exports it to the client.
func (b *Backend) Export(
	ctx context.Context, v volume.Volume, a volume.Access,
) (volume.Connection, volume.Access, error) {
	if a.Recorded {
		c, err := b.reach(ctx, v.ID, a)
		return c, a, err
	}
	a, err := b.resolve(ctx, a)
	if err != nil {
		return volume.Connection{}, a, err
	}
	if a.Method == Attachments {
		return b.attach(ctx, v, a)
	}
	if !isReserved(v) {
		if err := b.reserve(ctx, v); err != nil {
			return volume.Connection{}, a, err
		}
	}
	c, err := b.cinder.Initialize(ctx, v.ID, a.Client)
	return c, a, err
}

// reach returns the connection of a volume that an earlier run exported.
func (b *Backend) reach(ctx context.Context, id string, a volume.Access) (volume.Connection, error) {
	if a.Method != Attachments {
		return b.cinder.Initialize(ctx, id, a.Client)
	}
	all, err := b.cinder.Attachments(ctx, id)
	if err != nil {
		return volume.Connection{}, err
	}
	for _, one := range all {
		if one.ID == a.ID && !one.Connection.IsEmpty() {
			return one.Connection, nil
		}
	}
	return volume.Connection{}, &volume.Error{
		Kind:  volume.Busy,
		Doing: "reach volume " + id,
		Said:  fmt.Sprintf("its attachment %s is gone, or exports nothing", a.ID),
	}
}

// resolve replaces Auto by the method that this Cinder supports.
func (b *Backend) resolve(ctx context.Context, a volume.Access) (volume.Access, error) {
	if a.Method == Attachments || a.Method == Reserve {
		return a, nil
	}
	known, err := b.cinder.KnowsAttachments(ctx)
	if err != nil {
		return a, err
	}
	a.Method = Reserve
	if known {
		a.Method = Attachments
	}
	return a, nil
}

// reserve gets the volume again when Cinder refuses or does not answer: an overlapping run, or this very request, may
// have reserved it for the same claim.
func (b *Backend) reserve(ctx context.Context, v volume.Volume) error {
	err := b.cinder.Reserve(ctx, v.ID)
	if err == nil {
		return nil
	}
	if now, getErr := b.cinder.Get(ctx, v.ID); getErr == nil && isReserved(now) {
		return nil
	}
	return err
}
