package volume

import "context"

// release takes back what holds the volume, in the way in which it was held, and returns the volume as
// it is then.
func (k *Keeper) release(ctx context.Context, v Volume, h Hold) (Volume, error) {
	if !v.busy() {
		return v, nil
	}
	h, err := k.decide(ctx, h)
	if err != nil {
		return v, err
	}
	if h.API == Reserve {
		return k.unreserve(ctx, v, h)
	}
	if h.Attachment != "" {
		// Ours is known by its ID. What else is attached is somebody else's, and stays.
		return k.letGo(ctx, v, h, []Attachment{{ID: h.Attachment}})
	}
	ours, err := k.ours(ctx, v)
	if err != nil {
		return v, err
	}
	return k.letGo(ctx, v, h, ours)
}

// letGo detaches and then ends a reservation that no attachment explains.
func (k *Keeper) letGo(ctx context.Context, v Volume, h Hold, ours []Attachment) (Volume, error) {
	for _, a := range ours {
		if err := unlessGone(k.storage.Detach(ctx, a.ID)); err != nil {
			return v, err
		}
	}
	if len(ours) > 0 {
		now, err := k.storage.Get(ctx, v.ID)
		if err == nil {
			now, err = k.settled(ctx, now)
		}
		if err != nil {
			return v, err
		}
		v = now
	}
	return k.unreserve(ctx, v, h)
}

// unreserve takes the export and the reservation back. The storage may do the second with the first; to
// repeat it is harmless. On a volume that is in use both would change nothing.
func (k *Keeper) unreserve(ctx context.Context, v Volume, h Hold) (Volume, error) {
	if !v.held() {
		return v, nil
	}
	if err := k.storage.Terminate(ctx, v.ID, h.Connector); err != nil {
		return v, err
	}
	return v, k.storage.Unreserve(ctx, v.ID)
}
