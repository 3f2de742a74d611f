package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Ensure returns the claim's volume, ready to be exported: the one that an earlier run made, or a new
// one. When it fails, a volume with an ID says what stays behind.
func (k *Keeper) Ensure(ctx context.Context, spec Spec) (Volume, error) {
	v, err := k.existing(ctx, spec)
	switch {
	case err == nil && v.ID == "" && spec.Adopt != "":
		v, err = k.takeOver(ctx, spec)
	case err == nil && v.ID == "":
		v, err = k.create(ctx, spec)
	}
	if err != nil {
		return v, err
	}
	return k.ready(ctx, v, spec.Hold)
}

// existing returns the volume that an earlier run made, or none. Volumes that the storage gave up are
// removed: they hold no data, and the quota.
func (k *Keeper) existing(ctx context.Context, spec Spec) (Volume, error) {
	found, err := k.find(ctx, spec.UID)
	if err != nil {
		return Volume{}, err
	}
	var usable []Volume
	for _, v := range found {
		if !v.failed() || v.adopted() {
			usable = append(usable, v)
			continue
		}
		if err := k.remove(ctx, v, spec.Hold); err != nil {
			return v, err
		}
	}
	return k.keepOldest(ctx, usable, spec)
}

// find lists the claim's volumes, oldest first, without those that are being deleted.
func (k *Keeper) find(ctx context.Context, uid string) ([]Volume, error) {
	found, err := k.storage.Find(ctx, uid)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(v Volume) bool { return v.UID() != uid || v.Status == deleting })
	slices.SortFunc(found, byAge)
	return found, nil
}

func byAge(a, b Volume) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) }

// keepOldest removes all but the first: two runs can overlap and both create. They agree on which is
// the oldest, so that both go on with the same one.
func (k *Keeper) keepOldest(ctx context.Context, found []Volume, spec Spec) (Volume, error) {
	if len(found) == 0 {
		return Volume{}, nil
	}
	for _, spare := range found[1:] {
		if err := k.remove(ctx, spare, spec.Hold); err != nil {
			return found[0], fmt.Errorf("remove a second volume of the same claim: %w", err)
		}
	}
	return found[0], nil
}

// create asks for a volume and then looks what there is: the answer may have been lost on the way, and
// another run may have asked too. It never asks twice.
func (k *Keeper) create(ctx context.Context, spec Spec) (Volume, error) {
	made, err := k.storage.Create(ctx, spec)
	if err != nil && !ambiguous(err) {
		return Volume{}, err
	}
	found, lookErr := k.look(ctx, spec.UID, made.ID)
	if lookErr != nil {
		return made, errors.Join(err, lookErr)
	}
	if len(found) == 0 {
		return Volume{}, err
	}
	return k.keepOldest(ctx, found, spec)
}

// looks is how often a list may lag behind what the storage just made (replicated databases do).
const looks = 5

// look lists the claim's volumes, and insists on seeing the one that was just made.
func (k *Keeper) look(ctx context.Context, uid, id string) ([]Volume, error) {
	pause := firstPause
	for range looks {
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

// unfindable refuses a storage whose list does not show what it just made: every later run would make
// another volume.
func unfindable(id string) error {
	return &Error{
		Kind:  Misconfigured,
		Doing: "find volume " + id + " by the claim's UID after creating it",
		Said:  "the list of volumes does not show it: the storage must allow to filter volumes by metadata",
	}
}

// ready waits until the storage has made the volume, and stops at once when it gave up.
func (k *Keeper) ready(ctx context.Context, v Volume, h Hold) (Volume, error) {
	v, err := k.settled(ctx, v)
	switch {
	case err != nil:
		return v, err
	case v.failed():
		return v, k.storage.Why(ctx, v)
	case v.Status == available || v.held():
		return v, nil
	case v.Status == inUse && h.API != Reserve:
		// In use by our own attachment, or Export will say by whose.
		return v, nil
	default:
		return v, &Error{
			Kind:  Busy,
			Doing: "use volume " + v.ID,
			Said:  fmt.Sprintf("its status is %q, which is neither available nor ours", v.Status),
		}
	}
}
