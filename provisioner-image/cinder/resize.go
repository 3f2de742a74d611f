package cinder

import (
	"context"
	"errors"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Resize extends the volume unless it is large enough, and restores its reservation.
func (b *Backend) Resize(ctx context.Context, v volume.Volume, gib int, a volume.Access) (volume.Volume, error) {
	v, err := b.untilIdle(ctx, v)
	if err == nil && v.SizeGiB < gib {
		v, err = b.extend(ctx, v, gib, a)
	}
	if err == nil {
		v, err = b.restoreReservation(ctx, v, a)
	}
	return v, err
}

// extend requests the new size and waits for it. Cinder extends a volume in use, but none that is
// only reserved, as older images left it: its reservation ends for that time. The export stays.
func (b *Backend) extend(ctx context.Context, v volume.Volume, gib int, a volume.Access) (volume.Volume, error) {
	if isReserved(v) {
		if err := b.cinder.Unreserve(ctx, v.ID); err != nil {
			return v, err
		}
	}
	if v.State == volume.Failed {
		return v, b.cinder.FailureOf(ctx, v)
	}
	requestID, err := b.cinder.Extend(ctx, v.ID, gib, v.Status == inUse)
	if err != nil {
		return b.notExtended(ctx, v, a, err)
	}
	grown, err := b.untilExtended(ctx, v, gib, requestID)
	if err != nil {
		return b.notExtended(ctx, v, a, err)
	}
	return grown, nil
}

// untilExtended waits until Cinder no longer works on the volume, which has the size then unless it
// failed.
func (b *Backend) untilExtended(ctx context.Context, v volume.Volume, gib int, requestID string) (volume.Volume, error) {
	v, err := b.poll(ctx, v, extending, func(v volume.Volume) (bool, error) { return !isBusy(v), nil })
	switch {
	case err != nil || v.SizeGiB >= gib && v.State != volume.Failed:
		return v, err
	case v.State == volume.Failed:
		return v, b.cinder.FailureOf(ctx, v)
	default:
		return v, b.whyNotExtended(ctx, v, requestID)
	}
}

// mostAsked is how often Cinder is asked why a volume has its former size and status again. The
// scheduler gives it the status before it writes the message (extend_volume in
// cinder/scheduler/manager.py).
const mostAsked = 5

// whyNotExtended returns why a volume was not extended, as soon as Cinder says it.
func (b *Backend) whyNotExtended(ctx context.Context, v volume.Volume, requestID string) error {
	for pause, asked := firstPause, 1; ; pause, asked = pause*2, asked+1 {
		refusal, isSaid := b.cinder.notExtended(ctx, v, requestID)
		if isSaid || asked == mostAsked || b.wait(ctx, pause) != nil {
			return refusal
		}
	}
}

// notExtended returns why Cinder does not extend the volume, and reserves it again: no later run
// may do so, if the claim then asks for what it has.
func (b *Backend) notExtended(
	ctx context.Context, v volume.Volume, a volume.Access, refusal error,
) (volume.Volume, error) {
	if volume.Is(refusal, volume.Unavailable) || ctx.Err() != nil {
		return v, refusal
	}
	now, err := b.cinder.Get(ctx, v.ID)
	if err == nil && a.Method == Reserve && now.Status == available {
		err = byHost{b}.reserve(ctx, now)
	}
	if err != nil {
		return v, errors.Join(err, refusal)
	}
	return now, sizeOrStatus(refusal, v, now)
}

// sizeOrStatus returns the refusal of a size as one that another try may not meet, if the volume
// has changed since it was requested: an overlapping run may be extending it.
func sizeOrStatus(refusal error, before, now volume.Volume) error {
	e, ok := errors.AsType[*volume.Error](refusal)
	mayExtend := now.Status == available || now.Status == inUse
	if !ok || e.Kind != volume.Unsuitable || mayExtend && now.SizeGiB == before.SizeGiB {
		return refusal
	}
	again := *e
	again.Kind = volume.Busy
	return &again
}

// restoreReservation reserves and attaches the volume again after extending ended the reservation
// of an older image, in this run or in one that was killed. It requests the export again, which
// makes some storages announce the new size. An export that is only to be kept is not requested
// while the volume has it.
func (b *Backend) restoreReservation(ctx context.Context, v volume.Volume, a volume.Access) (volume.Volume, error) {
	if a.Method != Reserve || a.Recorded && v.Status == inUse {
		return v, nil
	}
	_, _, err := byHost{b}.hold(ctx, v, a)
	return v, err
}
