package cinder

import (
	"context"
	"fmt"
	"slices"
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
		if err := b.checkAttachment(ctx, v, a.ID); err != nil {
			return v, err
		}
		// The recorded attachment is the only connected one to delete. Others belong to other
		// clients.
		return b.detach(ctx, v, a, []Attachment{{ID: a.ID}})
	}
	if a.Recorded {
		return v, nil
	}
	ours, err := b.ownAttachments(ctx, v)
	if err != nil {
		return v, err
	}
	return b.detach(ctx, v, a, ours)
}

// released returns the volume as it is after its export has ended, or an error if another client uses
// it. A volume that Cinder has given up counts as released.
func (b *Backend) released(ctx context.Context, v volume.Volume) (volume.Volume, error) {
	if v.Status == available || v.State == volume.Failed {
		return v, nil
	}
	v, err := b.afterDetach(ctx, v)
	if err == nil && v.Status != available {
		err = notFree(v)
	}
	return v, err
}

// checkAttachment returns an error if the attachment that a PV names is another volume's. A thief
// of a provisioner's token, or a PV that was restored from an old backup, would end the export of
// that volume under the pods that use it. The volume itself shows the attachment of an ordinary
// run.
func (b *Backend) checkAttachment(ctx context.Context, v volume.Volume, id string) error {
	if slices.Contains(v.Exports, id) {
		return nil
	}
	of, err := b.cinder.VolumeOf(ctx, id)
	if err != nil || of == v.ID {
		return volume.IgnoreGone(err)
	}
	return &volume.Error{
		Kind:  volume.Misconfigured,
		Doing: "detach volume " + v.ID,
		Said:  "the PV names an attachment of another volume",
		Err: fmt.Errorf("attachment %s belongs to volume %s, and is kept. Remedy: remove the PV's annotation flex-provisioner.io/cinder-attachment-id; "+
			"then the attachments of volume %s are deleted", id, of, v.ID),
	}
}

// detach deletes the attachments, and then ends a reservation of the older workflow. It ends an
// attachment of the older workflow by that workflow's own requests: its export does not end with
// it.
func (b *Backend) detach(
	ctx context.Context, v volume.Volume, a volume.Access, ours []Attachment,
) (volume.Volume, error) {
	if areOfHost(ours) {
		return b.releaseHost(ctx, v, a)
	}
	v, err := b.endAll(ctx, v, ours)
	if err != nil {
		return v, err
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
		return b.free(ctx, v)
	}
	return v, nil
}

// createPause is how much later an attachment, or a volume without one, is looked at a second time:
// Cinder may still be creating the attachment of a run that was killed.
const createPause = 3 * time.Second

// free deletes unfinished attachments, and then resets a volume that is reserved without one:
// Cinder was killed between the two writes that create an attachment. It refuses to attach or to
// delete such a volume for ever, and Unreserve leaves it as it is.
func (b *Backend) free(ctx context.Context, v volume.Volume) (volume.Volume, error) {
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

func isConnected(one Attachment) bool { return !one.Connection.IsEmpty() }

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
