package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Ensure returns the claim's volume, ready to be exported: the one that an earlier run made, or a new one. If it
// fails and returns a volume with an ID, that volume exists.
func (k *Keeper) Ensure(ctx context.Context, spec Spec) (Volume, error) {
	v, err := k.existing(ctx, spec)
	switch {
	case err == nil && v.ID == "" && spec.Adopt != "":
		v, err = k.adopt(ctx, spec)
	case err == nil && v.ID == "":
		v, err = k.create(ctx, spec)
	}
	if err != nil {
		return v, err
	}
	return k.backend.Ready(ctx, v, spec.Access)
}

// existing returns the volume that an earlier run made, or none. It removes failed volumes: they have no content, and
// count against the quota.
func (k *Keeper) existing(ctx context.Context, spec Spec) (Volume, error) {
	found, err := k.find(ctx, spec.UID)
	if err != nil {
		return Volume{}, err
	}
	var usable []Volume
	for _, v := range found {
		if v.State != Failed || v.IsAdopted() {
			usable = append(usable, v)
			continue
		}
		if err := k.remove(ctx, v, spec.Access); err != nil {
			return v, err
		}
	}
	return k.keepOldest(ctx, usable, spec)
}

// find lists the claim's volumes, oldest first, without those that are being deleted.
func (k *Keeper) find(ctx context.Context, uid string) ([]Volume, error) {
	found, err := k.backend.List(ctx, Filter{UID: uid})
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(v Volume) bool { return v.UID() != uid || v.State == Deleting })
	slices.SortFunc(found, byAge)
	return found, nil
}

// keepOldest removes all volumes but the first. Overlapping runs may both create a volume; both of them keep the
// oldest.
func (k *Keeper) keepOldest(ctx context.Context, found []Volume, spec Spec) (Volume, error) {
	if len(found) == 0 {
		return Volume{}, nil
	}
	for _, spare := range found[1:] {
		if err := k.remove(ctx, spare, spec.Access); err != nil {
			return found[0], fmt.Errorf("remove a second volume of the same claim: %w", err)
		}
	}
	return found[0], nil
}

// create requests a volume and then lists what exists: the answer may have been lost, and an overlapping run may have
// created one too. It never requests a second volume.
func (k *Keeper) create(ctx context.Context, spec Spec) (Volume, error) {
	made, err := k.backend.Create(ctx, spec)
	if err != nil && !mayHaveHappened(err) {
		return Volume{}, err
	}
	found, listErr := k.listWith(ctx, spec.UID, made.ID)
	if listErr != nil {
		return made, errors.Join(err, listErr)
	}
	if len(found) == 0 {
		return Volume{}, err
	}
	return k.keepOldest(ctx, found, spec)
}

// A list may not show at once what the storage just made, for example if its database is replicated.
const (
	maxLists   = 5
	firstPause = 100 * time.Millisecond
)

// listWith lists the claim's volumes until the list shows the new one.
func (k *Keeper) listWith(ctx context.Context, uid, id string) ([]Volume, error) {
	pause := firstPause
	for range maxLists {
		found, err := k.find(ctx, uid)
		if err != nil || id == "" || slices.ContainsFunc(found, func(v Volume) bool { return v.ID == id }) {
			return found, err
		}
		if err := k.wait(ctx, pause); err != nil {
			return nil, fmt.Errorf("wait for volume %s to appear in the list of volumes: %w", id, err)
		}
		pause *= 2
	}
	return nil, unfindable(id)
}

// unfindable is the error of a storage whose list does not show what it just made. With it every later run would make
// another volume.
func unfindable(id string) error {
	return &Error{
		Kind:  Misconfigured,
		Doing: "find volume " + id + " by the claim's UID after creating it",
		Said:  "the list of volumes does not show it: the storage must allow to filter volumes by metadata",
	}
}
