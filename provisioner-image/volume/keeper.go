package volume

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Wait pauses for d, or until the context ends, which it reports as an error.
type Wait func(ctx context.Context, d time.Duration) error

// Keeper makes, exports and removes the volumes of claims. Whatever it does can be repeated.
type Keeper struct {
	storage Backend
	wait    Wait
}

// NewKeeper returns a Keeper over a storage.
func NewKeeper(storage Backend, wait Wait) *Keeper { return &Keeper{storage: storage, wait: wait} }

// List lists the volumes of all claims, oldest first: a cluster's, or everybody's where none is named.
func (k *Keeper) List(ctx context.Context, cluster string) ([]Volume, error) {
	all, err := k.storage.List(ctx, cluster)
	slices.SortFunc(all, byAge)
	return all, err
}

// A storage that is quick is noticed quickly, one that is slow is not asked often.
const (
	firstPause = 100 * time.Millisecond
	longest    = 5 * time.Second
)

// until asks for the volume again and again until done says so or fails. It ends with the context.
func (k *Keeper) until(ctx context.Context, v Volume, done func(Volume) (bool, error)) (Volume, error) {
	for pause := firstPause; ; pause = min(pause*3/2, longest) {
		now, err := k.storage.Get(ctx, v.ID)
		if err != nil {
			return v, err
		}
		v = now
		if ok, err := done(v); ok || err != nil {
			return v, err
		}
		if err := k.wait(ctx, pause); err != nil {
			return v, fmt.Errorf("wait for volume %s (%s), which is %q: %w", v.ID, v.Name, v.Status, err)
		}
	}
}

// settled waits until the storage has stopped working on the volume.
func (k *Keeper) settled(ctx context.Context, v Volume) (Volume, error) {
	if !v.moving() {
		return v, nil
	}
	return k.until(ctx, v, func(v Volume) (bool, error) { return !v.moving(), nil })
}
