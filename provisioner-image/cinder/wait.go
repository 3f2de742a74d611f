package cinder

import (
	"context"
	"fmt"
	"time"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// A Cinder that is quick is noticed quickly, one that is slow is not asked often.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// until asks for the volume again and again until done returns true or an error. It ends with the context.
func (b *Backend) until(
	ctx context.Context, v volume.Volume, done func(volume.Volume) (bool, error),
) (volume.Volume, error) {
	for pause := firstPause; ; pause = min(pause*3/2, longestPause) {
		now, err := b.cinder.Get(ctx, v.ID)
		if err != nil {
			return v, err
		}
		v = now
		if ok, err := done(v); ok || err != nil {
			return v, err
		}
		if err := b.wait(ctx, pause); err != nil {
			return v, fmt.Errorf("wait for volume %s (%s), which is %q: %w", v.ID, v.Name, v.Status, err)
		}
	}
}

// settled waits until Cinder has stopped working on the volume.
func (b *Backend) settled(ctx context.Context, v volume.Volume) (volume.Volume, error) {
	if !isMoving(v) {
		return v, nil
	}
	return b.until(ctx, v, func(v volume.Volume) (bool, error) { return !isMoving(v), nil })
}
