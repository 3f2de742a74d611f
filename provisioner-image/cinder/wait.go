package cinder

import (
	"context"
	"fmt"
	"time"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// The pauses grow, so that a fast Cinder does not have to wait and a slow one is not asked often. A
// wait lasts a quarter longer than it has to, at most, and an eighth on average.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// poll gets the volume again and again until done returns true or an error, or the context ends. It
// pauses first: no storage has done at once what it was just asked for.
func (b *Backend) poll(
	ctx context.Context, v volume.Volume, done func(volume.Volume) (bool, error),
) (volume.Volume, error) {
	for pause := firstPause; ; pause = min(pause*5/4, longestPause) {
		if err := b.wait(ctx, pause); err != nil {
			return v, fmt.Errorf("wait for volume %s (%s) in status %q: %w", v.ID, v.Name, v.Status, err)
		}
		now, err := b.cinder.Get(ctx, v.ID)
		if err != nil {
			return v, err
		}
		v = now
		if ok, err := done(v); ok || err != nil {
			return v, err
		}
	}
}

// untilIdle waits until Cinder is no longer working on the volume.
func (b *Backend) untilIdle(ctx context.Context, v volume.Volume) (volume.Volume, error) {
	if !isBusy(v) {
		return v, nil
	}
	return b.poll(ctx, v, func(v volume.Volume) (bool, error) { return !isBusy(v), nil })
}
