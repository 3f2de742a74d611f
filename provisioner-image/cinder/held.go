package cinder

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// What may hold a volume, and how each of that ends. Both workflows meet what the other has left.

// ownAttachments lists the volume's attachments, first those that export it. The volume is the
// claim's, so that every attachment was made by a run of this image, unless Nova made it.
func (b *Backend) ownAttachments(ctx context.Context, v volume.Volume) ([]Attachment, error) {
	all, err := b.cinder.Attachments(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		if one.Server != "" {
			return nil, inUseBy(v, "server "+one.Server)
		}
	}
	slices.SortFunc(all, func(x, y Attachment) int {
		return cmp.Or(cmp.Compare(y.Connection.Kind, x.Connection.Kind), cmp.Compare(x.ID, y.ID))
	})
	return all, nil
}

// knownAttachments is ownAttachments, or nothing of a Cinder that knows no attachments.
func (b *Backend) knownAttachments(ctx context.Context, v volume.Volume) ([]Attachment, error) {
	if known, err := b.knowsAttachments(ctx); err != nil || !known {
		return nil, err
	}
	return b.ownAttachments(ctx, v)
}

func inUseBy(v volume.Volume, whom string) error {
	return &volume.Error{
		Kind:  volume.Busy,
		Doing: "hold volume " + v.ID,
		Said:  whom + " uses it, and must detach it first",
	}
}

// areOfHost reports whether one of the attachments was made by the older workflow, which exports
// the volume without it.
func areOfHost(all []Attachment) bool {
	return slices.ContainsFunc(all, func(one Attachment) bool {
		return one.Status == attached && one.Connection.IsEmpty()
	})
}

func isConnected(one Attachment) bool { return !one.Connection.IsEmpty() }

// afterDetach returns the volume as it is once Cinder has detached it.
func (b *Backend) afterDetach(ctx context.Context, v volume.Volume) (volume.Volume, error) {
	now, err := b.cinder.Get(ctx, v.ID)
	if err != nil {
		return v, err
	}
	return b.untilIdle(ctx, now)
}

// unreserve ends a reservation, and the export that one by the older workflow may have. Cinder may
// do the second with the first; repeating it does no harm. A volume in use is left as it is.
func (b *Backend) unreserve(ctx context.Context, v volume.Volume, a volume.Access) (volume.Volume, error) {
	switch v.Status {
	case attaching:
		if err := b.cinder.Terminate(ctx, v.ID, a.Client); err != nil {
			return v, err
		}
		return v, b.cinder.Unreserve(ctx, v.ID)
	case reserved:
		return b.reset(ctx, v)
	}
	return v, nil
}

// createPause is how much later an attachment, or a volume without one, is looked at a second time:
// Cinder may still be creating the attachment of a run that was killed.
const createPause = 3 * time.Second

// reset deletes unfinished attachments, and then resets a volume that is reserved without one:
// Cinder was killed between the two writes that create an attachment. It refuses to attach or to
// delete such a volume for ever, and Unreserve leaves it as it is.
func (b *Backend) reset(ctx context.Context, v volume.Volume) (volume.Volume, error) {
	v, err := b.endUnfinished(ctx, v)
	if err != nil || v.Status != reserved {
		return v, err
	}
	if err := b.wait(ctx, createPause); err != nil {
		return v, err
	}
	if v, err = b.cinder.Get(ctx, v.ID); err != nil || v.Status != reserved {
		return v, err
	}
	if all, err := b.knownAttachments(ctx, v); err != nil || len(all) > 0 {
		return v, err
	}
	if err := b.cinder.DetachHost(ctx, v.ID, ""); err != nil {
		return v, err
	}
	return b.afterDetach(ctx, v)
}

// endUnfinished deletes the attachments that a killed Cinder has not finished, or that it has
// created late, and returns the volume as it is then. Those of a run at work look the same, for a
// moment: only what is still unfinished at a second look is deleted.
func (b *Backend) endUnfinished(ctx context.Context, v volume.Volume) (volume.Volume, error) {
	before, err := b.unfinished(ctx, v)
	if err != nil || len(before) == 0 {
		return v, err
	}
	if err := b.wait(ctx, createPause); err != nil {
		return v, err
	}
	now, err := b.unfinished(ctx, v)
	if err != nil {
		return v, err
	}
	isNew := func(one Attachment) bool {
		return !slices.ContainsFunc(before, func(old Attachment) bool { return old.ID == one.ID })
	}
	return b.endAll(ctx, v, slices.DeleteFunc(now, isNew))
}

// unfinished lists the attachments that are neither completed nor connected.
func (b *Backend) unfinished(ctx context.Context, v volume.Volume) ([]Attachment, error) {
	all, err := b.knownAttachments(ctx, v)
	return slices.DeleteFunc(all, func(one Attachment) bool { return one.Status == attached || isConnected(one) }), err
}

// endAll deletes attachments, and returns the volume as it is then.
func (b *Backend) endAll(ctx context.Context, v volume.Volume, all []Attachment) (volume.Volume, error) {
	for _, one := range all {
		if err := volume.IgnoreGone(b.cinder.Detach(ctx, one.ID)); err != nil {
			return v, err
		}
	}
	if len(all) == 0 {
		return v, nil
	}
	return b.afterDetach(ctx, v)
}
