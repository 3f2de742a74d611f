package cinder

import (
	"context"

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
	return v, b.cinder.Unreserve(ctx, v.ID)
}
