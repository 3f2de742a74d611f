package volume

import (
	"context"
	"fmt"
)

// Export holds the volume, unless an earlier run does, and makes it reachable for the connector. The
// Hold that it returns is what can take it back.
func (k *Keeper) Export(ctx context.Context, v Volume, h Hold) (Connection, Hold, error) {
	h, err := k.decide(ctx, h)
	if err != nil {
		return Connection{}, h, err
	}
	if h.API == Attachments {
		return k.attach(ctx, v, h)
	}
	if !v.held() {
		if err := k.reserve(ctx, v); err != nil {
			return Connection{}, h, err
		}
	}
	c, err := k.storage.Initialize(ctx, v.ID, h.Connector)
	return c, h, err
}

// Reach tells again how to reach a volume that a run has exported.
func (k *Keeper) Reach(ctx context.Context, id string, h Hold) (Connection, error) {
	if h.API != Attachments {
		return k.storage.Initialize(ctx, id, h.Connector)
	}
	all, err := k.storage.Attachments(ctx, id)
	if err != nil {
		return Connection{}, err
	}
	for _, a := range all {
		if a.ID == h.Attachment && !a.Connection.Empty() {
			return a.Connection, nil
		}
	}
	return Connection{}, &Error{
		Kind:  Busy,
		Doing: "reach volume " + id,
		Said:  fmt.Sprintf("its attachment %s is gone, or exports nothing", h.Attachment),
	}
}

// decide turns Auto into what the storage can do.
func (k *Keeper) decide(ctx context.Context, h Hold) (Hold, error) {
	if h.API == Attachments || h.API == Reserve {
		return h, nil
	}
	known, err := k.storage.KnowsAttachments(ctx)
	if err != nil {
		return h, err
	}
	h.API = Reserve
	if known {
		h.API = Attachments
	}
	return h, nil
}

// reserve looks at the volume when the storage refuses or does not answer: a run that overlaps with
// this one, or this very request, may have reserved it for the same claim.
func (k *Keeper) reserve(ctx context.Context, v Volume) error {
	err := k.storage.Reserve(ctx, v.ID)
	if err == nil {
		return nil
	}
	if now, lookErr := k.storage.Get(ctx, v.ID); lookErr == nil && now.held() {
		return nil
	}
	return err
}
