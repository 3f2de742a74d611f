package cinder

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// attach completes the attachments workflow (attach, connect, complete) from where an earlier run
// left it.
func (b *Backend) attach(
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
func (b *Backend) attachment(ctx context.Context, v volume.Volume, a volume.Access) (Attachment, error) {
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

// attachedSince returns the attachment that Cinder has made although the request failed: the answer may have
// been lost, or an overlapping run of the same claim may have attached the volume first.
func (b *Backend) attachedSince(ctx context.Context, v volume.Volume, failed error) (Attachment, error) {
	now, err := b.cinder.Get(ctx, v.ID)
	if err != nil || now.UID() != v.UID() {
		return Attachment{}, failed
	}
	if ours, err := b.ownAttachments(ctx, now); err == nil && len(ours) > 0 {
		return ours[0], nil
	}
	return Attachment{}, failed
}

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
