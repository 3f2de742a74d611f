package cinder

import (
	"context"
	"fmt"
	"time"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// The pauses grow, so that a fast Cinder does not have to wait and a slow one is not asked often. A
// wait lasts a quarter longer than it has to, at most, and an eighth on average. In a batch the
// first pause is most of what Cinder has needed for the same work last: a wait of six seconds takes
// thirteen requests otherwise, of each volume. A wait after a slower one lasts up to five seconds
// longer than it has to.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// poll gets the volume again and again until done returns true or an error, or the context ends. It
// pauses first: no storage has done at once what it was just asked for. The work is Cinder's status
// of a volume meanwhile.
func (b *Backend) poll(
	ctx context.Context, v volume.Volume, work string, done func(volume.Volume) (bool, error),
) (volume.Volume, error) {
	first, waited := firstPause, time.Duration(0)
	if last, known := b.worked.Load(work); known {
		first = min(max(last.(time.Duration)*3/4, firstPause), longestPause)
	}
	defer func() { b.worked.Store(work, waited) }()
	for pause := first; ; pause = min(firstPause+waited/4, longestPause) {
		if err := b.wait(ctx, pause); err != nil {
			return v, fmt.Errorf("wait for volume %s (%s) in status %q: %w", v.ID, v.Name, v.Status, err)
		}
		waited += pause
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
	return b.poll(ctx, v, v.Status, func(v volume.Volume) (bool, error) { return !isBusy(v), nil })
}
