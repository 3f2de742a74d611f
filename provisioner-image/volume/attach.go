package volume

import (
	"cmp"
	"context"
	"slices"
)

// attach takes those steps of the attachments workflow that an earlier run has not taken: attach,
// connect, complete.
func (k *Keeper) attach(ctx context.Context, v Volume, h Hold) (Connection, Hold, error) {
	a, err := k.attachment(ctx, v, h)
	if err != nil {
		return Connection{}, h, err
	}
	h.Attachment = a.ID
	if a.Connection.Empty() {
		if a.Connection, err = k.storage.Connect(ctx, a.ID, h.Connector); err != nil {
			return Connection{}, h, err
		}
	}
	if a.Status != attached {
		err = k.storage.Complete(ctx, a.ID)
	}
	return a.Connection, h, err
}

// attachment finds ours, or makes it. One that the storage gave up is made again.
func (k *Keeper) attachment(ctx context.Context, v Volume, h Hold) (Attachment, error) {
	ours, err := k.ours(ctx, v)
	if err != nil {
		return Attachment{}, err
	}
	if len(ours) > 0 && ours[0].Status != errorAttaching {
		return ours[0], nil
	}
	// What holds the volume otherwise is a failed attachment, or a reservation of the older workflow.
	if v, err = k.letGo(ctx, v, h, ours); err != nil {
		return Attachment{}, err
	}
	made, err := k.storage.Attach(ctx, v.ID)
	if err == nil {
		return made, nil
	}
	// The answer may have been lost, or a run that overlaps with this one was faster.
	if ours, lookErr := k.ours(ctx, v); lookErr == nil && len(ours) > 0 {
		return ours[0], nil
	}
	return Attachment{}, err
}

// ours lists the volume's attachments, which are ours unless Nova made them: the volume is the claim's.
func (k *Keeper) ours(ctx context.Context, v Volume) ([]Attachment, error) {
	all, err := k.storage.Attachments(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if a.Server != "" {
			return nil, inUseBy(v, "server "+a.Server)
		}
	}
	slices.SortFunc(all, func(a, b Attachment) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

func inUseBy(v Volume, whom string) error {
	return &Error{
		Kind:  Busy,
		Doing: "hold volume " + v.ID,
		Said:  "it is in use by " + whom + ", which has to let it go first",
	}
}
