package cinder

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// byAttachment exports a volume for an attachment of its own (attach, connect, complete).
type byAttachment struct{ *Backend }

// hold completes the attachment from where an earlier run left it.
func (b byAttachment) hold(
	ctx context.Context, v volume.Volume, a volume.Access,
) (volume.Connection, volume.Access, error) {
	ours, err := b.attachment(ctx, v, a)
	if err != nil {
		return volume.Connection{}, a, err
	}
	a.ID = ours.ID
	if ours.Connection.IsEmpty() {
		if ours.Connection, err = b.cinder.Connect(ctx, ours.ID, a.Client); err != nil {
			return volume.Connection{}, a, err
		}
	}
	// Cinder changes the attachment first and then the volume. If it died in between, it does the
	// rest when it is asked again.
	if ours.Status != attached || isReserved(v) {
		err = b.cinder.Complete(ctx, ours.ID)
	}
	return ours.Connection, a, err
}

// attachment returns the attachment of an earlier run, or makes one. A failed attachment is
// replaced.
func (b byAttachment) attachment(ctx context.Context, v volume.Volume, a volume.Access) (Attachment, error) {
	ours, err := b.ownAttachments(ctx, v)
	if err != nil {
		return Attachment{}, err
	}
	if len(ours) > 0 && ours[0].Status != errorAttaching && !areOfHost(ours) {
		return ours[0], nil
	}
	// A failed attachment, or a reservation or an attachment of the older workflow, may still block
	// the volume.
	if v, err = b.detach(ctx, v, a, ours); err != nil {
		return Attachment{}, err
	}
	made, err := b.cinder.Attach(ctx, v.ID)
	if err == nil || errors.Is(err, errNeedsServer) {
		return made, err
	}
	return b.attachedSince(ctx, v, err)
}

// attachedSince returns the attachment that Cinder has made although the request failed: the answer
// may have been lost, or an overlapping run of the same claim may have attached the volume first.
func (b byAttachment) attachedSince(ctx context.Context, v volume.Volume, failed error) (Attachment, error) {
	now, err := b.cinder.Get(ctx, v.ID)
	if err != nil || now.UID() != v.UID() {
		return Attachment{}, failed
	}
	if ours, err := b.ownAttachments(ctx, now); err == nil && len(ours) > 0 {
		return ours[0], nil
	}
	return Attachment{}, failed
}

// reach returns the connection of the attachment that is recorded.
func (b byAttachment) reach(ctx context.Context, id string, a volume.Access) (volume.Connection, error) {
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
		Said:  fmt.Sprintf("its attachment %s no longer exists, or does not export it", a.ID),
	}
}

// free deletes the attachments of the volume, or only the one that is recorded.
func (b byAttachment) free(ctx context.Context, v volume.Volume, a volume.Access) (volume.Volume, error) {
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

// checkAttachment returns an error if the attachment that a PV names is another volume's. A thief
// of a provisioner's token, or a PV that was restored from an old backup, would end the export of
// that volume under the pods that use it. The volume itself shows the attachment of an ordinary
// run.
func (b byAttachment) checkAttachment(ctx context.Context, v volume.Volume, id string) error {
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
func (b byAttachment) detach(
	ctx context.Context, v volume.Volume, a volume.Access, ours []Attachment,
) (volume.Volume, error) {
	if areOfHost(ours) {
		return b.workflow(Reserve).free(ctx, v, a)
	}
	v, err := b.endAll(ctx, v, ours)
	if err != nil {
		return v, err
	}
	return b.unreserve(ctx, v, a)
}
