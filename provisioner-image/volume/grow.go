package volume

import (
	"context"
	"fmt"
)

// Growth is what to grow, how it is held, and to what size.
type Growth struct {
	UID, ID string
	SizeGiB int
	Hold    Hold
}

// Grow extends the volume, in use or not, and returns it as it is then. One that is large enough stays
// as it is.
func (k *Keeper) Grow(ctx context.Context, g Growth) (Volume, error) {
	v, err := k.storage.Get(ctx, g.ID)
	if err == nil {
		v, err = k.settled(ctx, v)
	}
	if err != nil {
		return v, err
	}
	if v.UID() != g.UID {
		return v, notOurs(v, "extend volume", g.UID)
	}
	if v.SizeGiB < g.SizeGiB {
		if v, err = k.extend(ctx, v, g); err != nil {
			return v, err
		}
	}
	return k.holdAgain(ctx, v, g.Hold)
}

// extend asks and waits. The storage refuses a volume that is only reserved, so that the reservation
// ends for that time; the export stays.
func (k *Keeper) extend(ctx context.Context, v Volume, g Growth) (Volume, error) {
	if v.held() {
		if err := k.storage.Unreserve(ctx, v.ID); err != nil {
			return v, err
		}
	}
	if v.failed() {
		return v, k.storage.Why(ctx, v)
	}
	if err := k.storage.Extend(ctx, v.ID, g.SizeGiB, v.Status == inUse); err != nil {
		return v, err
	}
	return k.until(ctx, v, func(v Volume) (bool, error) {
		switch {
		case v.failed():
			return false, k.storage.Why(ctx, v)
		case v.moving():
			return false, nil
		case v.SizeGiB < g.SizeGiB:
			return false, &Error{
				Kind:  Busy,
				Doing: "extend volume " + v.ID,
				Said:  fmt.Sprintf("the storage left it at %d GiB", v.SizeGiB),
			}
		default:
			return true, nil
		}
	})
}

// holdAgain restores a reservation that extending ended, in this run or in one that was killed, and
// asks for the export again, by which some storages tell the new size.
func (k *Keeper) holdAgain(ctx context.Context, v Volume, h Hold) (Volume, error) {
	if h.API != Reserve {
		return v, nil
	}
	if !v.held() && v.Status == available {
		if err := k.reserve(ctx, v); err != nil {
			return v, err
		}
	}
	_, err := k.storage.Initialize(ctx, v.ID, h.Connector)
	return v, err
}

func notOurs(v Volume, doing, uid string) error {
	return &Error{
		Kind:  Misconfigured,
		Doing: doing + " " + v.ID + ", which is noted on the PV",
		Said:  fmt.Sprintf("the volume's metadata say that it belongs to claim %q, not to %s", v.UID(), uid),
	}
}
