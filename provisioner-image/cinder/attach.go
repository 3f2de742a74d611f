package cinder

import (
	"cmp"
	"context"
	"slices"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// attach takes those steps of the attachments workflow that an earlier run has not taken: attach,
// connect, complete.
func (b *Backend) attach(
	ctx context.Context, v volume.Volume, a volume.Access,
) (volume.Connection, volume.Access, error) {
	ours, err := b.attachment(ctx, v, a)
	if err != nil {
		return volume.Connection{}, a, err
	}
	a.ID = ours.ID
	if ours.Connection.Empty() {
		if ours.Connection, err = b.cinder.Connect(ctx, ours.ID, a.Client); err != nil {
			return volume.Connection{}, a, err
		}
	}
	if ours.Status != attached {
		err = b.cinder.Complete(ctx, ours.ID)
	}
	return ours.Connection, a, err
}

// attachment finds ours, or makes it. One that Cinder gave up is made again.
func (b *Backend) attachment(ctx context.Context, v volume.Volume, a volume.Access) (Attachment, error) {
	ours, err := b.ownAttachments(ctx, v)
	if err != nil {
		return Attachment{}, err
	}
	if len(ours) > 0 && ours[0].Status != errorAttaching {
		return ours[0], nil
	}
	// A failed attachment may hold the volume, or a reservation of the older workflow.
	if v, err = b.detach(ctx, v, a, ours); err != nil {
		return Attachment{}, err
	}
	made, err := b.cinder.Attach(ctx, v.ID)
	if err == nil {
		return made, nil
	}
	// The answer may have been lost, or a run that overlaps with this one was faster.
	if ours, lookErr := b.ownAttachments(ctx, v); lookErr == nil && len(ours) > 0 {
		return ours[0], nil
	}
	return Attachment{}, err
}

// ownAttachments lists the volume's attachments. The volume is the claim's, so that they are ours unless Nova made
// one.
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
	slices.SortFunc(all, func(x, y Attachment) int { return cmp.Compare(x.ID, y.ID) })
	return all, nil
}

func inUseBy(v volume.Volume, whom string) error {
	return &volume.Error{
		Kind:  volume.Busy,
		Doing: "hold volume " + v.ID,
		Said:  "it is in use by " + whom + ", which has to let it go first",
	}
}
