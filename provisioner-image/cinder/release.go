package cinder

import (
	"context"
	"time"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// release removes the export by the method that made it, and returns the volume as it is then.
func (b *Backend) release(ctx context.Context, v volume.Volume, a volume.Access) (volume.Volume, error) {
	if !mayBeExported(v) {
		return v, nil
	}
	a, err := b.resolve(ctx, a)
	if err != nil {
		return v, err
	}
	if a.Method == Reserve {
		return b.releaseHost(ctx, v, a)
	}
	if a.ID != "" {
		// The recorded attachment is the only one to delete. Others belong to other clients.
		return b.detach(ctx, v, a, []Attachment{{ID: a.ID}})
	}
	ours, err := b.ownAttachments(ctx, v)
	if err != nil {
		return v, err
	}
	return b.detach(ctx, v, a, ours)
}

// detach deletes the attachments, and then ends a reservation of the older workflow. It ends an attachment of the older
// workflow by that workflow's own requests: its export does not end with it.
func (b *Backend) detach(
	ctx context.Context, v volume.Volume, a volume.Access, ours []Attachment,
) (volume.Volume, error) {
	if areOfHost(ours) {
		return b.releaseHost(ctx, v, a)
	}
	for _, one := range ours {
		if err := volume.IgnoreGone(b.cinder.Detach(ctx, one.ID)); err != nil {
			return v, err
		}
	}
	if len(ours) > 0 {
		var err error
		if v, err = b.afterDetach(ctx, v); err != nil {
			return v, err
		}
	}
	return b.unreserve(ctx, v, a)
}

// afterDetach returns the volume as it is once Cinder has detached it.
func (b *Backend) afterDetach(ctx context.Context, v volume.Volume) (volume.Volume, error) {
	now, err := b.cinder.Get(ctx, v.ID)
	if err != nil {
		return v, err
	}
	return b.untilIdle(ctx, now)
}

// unreserve removes the export and the reservation. Cinder may do the second with the first; repeating it does no
// harm. A volume in use is left as it is.
func (b *Backend) unreserve(ctx context.Context, v volume.Volume, a volume.Access) (volume.Volume, error) {
	if !isReserved(v) {
		return v, nil
	}
	if err := b.cinder.Terminate(ctx, v.ID, a.Client); err != nil {
		return v, err
	}
	return v, b.endReservation(ctx, v)
}

// endReservation ends a reservation by either workflow.
func (b *Backend) endReservation(ctx context.Context, v volume.Volume) error {
	if err := b.cinder.Unreserve(ctx, v.ID); err != nil || v.Status != reserved {
		return err
	}
	return b.freeIfForgotten(ctx, v)
}

// createPause is how long Cinder may take between the two writes that create an attachment. A create whose client was killed is still executed.
const createPause = 3 * time.Second

// freeIfForgotten frees a volume that has no attachment but stays reserved: Cinder was killed between the two writes that create an
// attachment. It refuses to attach or to delete such a volume for ever, and Unreserve leaves it as it is.
func (b *Backend) freeIfForgotten(ctx context.Context, v volume.Volume) error {
	for _, pause := range []time.Duration{0, createPause} {
		if err := b.wait(ctx, pause); err != nil {
			return err
		}
		if isForgotten, err := b.isForgotten(ctx, v.ID); err != nil || !isForgotten {
			return err
		}
	}
	return b.cinder.DetachHost(ctx, v.ID, "")
}

// isForgotten reports whether the volume is reserved without an attachment.
func (b *Backend) isForgotten(ctx context.Context, id string) (bool, error) {
	now, err := b.cinder.Get(ctx, id)
	if err != nil || now.Status != reserved {
		return false, err
	}
	ours, err := b.ownAttachments(ctx, now)
	return len(ours) == 0 && err == nil, err
}
