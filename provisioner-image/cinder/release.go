package cinder

import (
	"context"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// release takes the export back by the method that made it, and returns the volume as it is then.
func (b *Backend) release(ctx context.Context, v volume.Volume, a volume.Access) (volume.Volume, error) {
	if !mayBeHeld(v) {
		return v, nil
	}
	a, err := b.resolve(ctx, a)
	if err != nil {
		return v, err
	}
	if a.Method == Reserve {
		return b.unreserve(ctx, v, a)
	}
	if a.ID != "" {
		// Ours is known by its ID. What else is attached is somebody else's, and stays.
		return b.detach(ctx, v, a, []Attachment{{ID: a.ID}})
	}
	ours, err := b.ownAttachments(ctx, v)
	if err != nil {
		return v, err
	}
	return b.detach(ctx, v, a, ours)
}

// detach deletes the attachments and then ends a reservation that no attachment explains.
func (b *Backend) detach(
	ctx context.Context, v volume.Volume, a volume.Access, ours []Attachment,
) (volume.Volume, error) {
	for _, one := range ours {
		if err := volume.IgnoreGone(b.cinder.Detach(ctx, one.ID)); err != nil {
			return v, err
		}
	}
	if len(ours) > 0 {
		now, err := b.cinder.Get(ctx, v.ID)
		if err == nil {
			now, err = b.settled(ctx, now)
		}
		if err != nil {
			return v, err
		}
		v = now
	}
	return b.unreserve(ctx, v, a)
}

// unreserve takes the export and the reservation back. Cinder may do the second with the first; to
// repeat it is harmless. On a volume that is in use both would change nothing.
func (b *Backend) unreserve(ctx context.Context, v volume.Volume, a volume.Access) (volume.Volume, error) {
	if !isReserved(v) {
		return v, nil
	}
	if err := b.cinder.Terminate(ctx, v.ID, a.Client); err != nil {
		return v, err
	}
	return v, b.cinder.Unreserve(ctx, v.ID)
}
