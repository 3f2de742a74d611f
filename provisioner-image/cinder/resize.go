package cinder

import (
	"context"
	"fmt"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Resize extends the volume unless it is large enough, and restores what holds it.
func (b *Backend) Resize(ctx context.Context, v volume.Volume, gib int, a volume.Access) (volume.Resized, error) {
	v, err := b.settled(ctx, v)
	if err == nil && v.SizeGiB < gib {
		v, err = b.extend(ctx, v, gib)
	}
	if err == nil {
		v, err = b.holdAgain(ctx, v, a)
	}
	return volume.Resized{Volume: v, Caveat: caveat(a)}, err
}

// caveat: without an attachment some storages keep the size in the export as it was.
func caveat(a volume.Access) string {
	if a.Method != Reserve {
		return ""
	}
	return "some storages show the new size only after they were restarted, as the volume is held by attach-api reserve"
}

// extend asks and waits. Cinder refuses a volume that is only reserved, so that the reservation
// ends for that time; the export stays.
func (b *Backend) extend(ctx context.Context, v volume.Volume, gib int) (volume.Volume, error) {
	if isReserved(v) {
		if err := b.cinder.Unreserve(ctx, v.ID); err != nil {
			return v, err
		}
	}
	if v.State == volume.Failed {
		return v, b.cinder.Why(ctx, v)
	}
	if err := b.cinder.Extend(ctx, v.ID, gib, v.Status == inUse); err != nil {
		return v, err
	}
	return b.until(ctx, v, func(v volume.Volume) (bool, error) { return b.hasSize(ctx, v, gib) })
}

// hasSize reports whether the volume has the size that was asked for. The error says why it never will.
func (b *Backend) hasSize(ctx context.Context, v volume.Volume, gib int) (bool, error) {
	switch {
	case v.State == volume.Failed:
		return false, b.cinder.Why(ctx, v)
	case isMoving(v):
		return false, nil
	case v.SizeGiB < gib:
		return false, &volume.Error{
			Kind:  volume.Busy,
			Doing: "extend volume " + v.ID,
			Said:  fmt.Sprintf("the storage left it at %d GiB", v.SizeGiB),
		}
	default:
		return true, nil
	}
}

// holdAgain restores a reservation that extending ended, in this run or in one that was killed, and
// asks for the export again, by which some storages tell the new size.
func (b *Backend) holdAgain(ctx context.Context, v volume.Volume, a volume.Access) (volume.Volume, error) {
	if a.Method != Reserve {
		return v, nil
	}
	if !isReserved(v) && v.Status == available {
		if err := b.reserve(ctx, v); err != nil {
			return v, err
		}
	}
	_, err := b.cinder.Initialize(ctx, v.ID, a.Client)
	return v, err
}
