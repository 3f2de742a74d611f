package volume

import (
	"context"
	"errors"
	"fmt"
)

// Target says what to remove: every volume of the claim, and the one that was noted when it was made,
// whose metadata someone may have edited since.
type Target struct {
	UID  string
	ID   string
	Hold Hold
	// Undo takes back what never came to a PV, so that adopted volumes keep their content.
	Undo bool
}

// Remove takes back all that was made for a claim, in the reverse order, from whatever state it is in.
// What is not there counts as removed.
func (k *Keeper) Remove(ctx context.Context, t Target) error {
	found, err := k.targets(ctx, t)
	if err != nil {
		return err
	}
	var faults []error
	for _, v := range found {
		if t.Undo && v.adopted() {
			faults = append(faults, k.giveBack(ctx, v, t.holdOf(v)))
			continue
		}
		faults = append(faults, k.remove(ctx, v, t.holdOf(v)))
	}
	return errors.Join(faults...)
}

// holdOf is how one of the volumes is held: what was noted is about the noted one.
func (t Target) holdOf(v Volume) Hold {
	h := t.Hold
	if t.ID != "" && v.ID != t.ID {
		h.Attachment = ""
	}
	return h
}

// Discard removes one volume that lost against another of the same claim.
func (k *Keeper) Discard(ctx context.Context, v Volume, h Hold) error {
	v, err := k.storage.Get(ctx, v.ID)
	if err != nil {
		return unlessGone(err)
	}
	return k.remove(ctx, v, h)
}

func (k *Keeper) targets(ctx context.Context, t Target) ([]Volume, error) {
	found, err := k.storage.Find(ctx, t.UID)
	if err != nil {
		return nil, err
	}
	for _, v := range found {
		if v.ID == t.ID {
			return found, nil
		}
	}
	return k.withNoted(ctx, found, t)
}

// withNoted adds the noted volume. One that carries another claim's UID is not ours to delete.
func (k *Keeper) withNoted(ctx context.Context, found []Volume, t Target) ([]Volume, error) {
	if t.ID == "" {
		return found, nil
	}
	v, err := k.storage.Get(ctx, t.ID)
	if err != nil {
		return found, unlessGone(err)
	}
	if owner := v.UID(); owner != "" && owner != t.UID {
		return nil, notOurs(v, "remove volume", t.UID)
	}
	return append(found, v), nil
}

// remove takes one volume back: release, delete, and wait until it is gone.
func (k *Keeper) remove(ctx context.Context, v Volume, h Hold) error {
	v, err := k.settled(ctx, v)
	if err == nil {
		v, err = k.release(ctx, v, h)
	}
	if err == nil && v.Status == inUse {
		err = inUseBy(v, "someone else")
	}
	if err == nil && v.Status != deleting {
		err = k.storage.Delete(ctx, v.ID)
	}
	if err == nil {
		_, err = k.until(ctx, v, stillThere)
	}
	return unlessGone(err)
}

// stillThere waits for the storage's "not found". A volume that comes back from deleting was not
// deleted: it has a snapshot or a clone, or the storage failed.
func stillThere(v Volume) (bool, error) {
	if v.Status == deleting {
		return false, nil
	}
	return false, &Error{
		Kind:  Busy,
		Doing: "delete volume " + v.ID,
		Said:  fmt.Sprintf("the storage did not delete it and left it %q; something may depend on it", v.Status),
	}
}
