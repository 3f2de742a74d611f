package volume

import (
	"context"
	"errors"
)

// Target says what to remove: every volume of the claim, and the one that was noted when it was made,
// whose metadata someone may have edited since.
type Target struct {
	UID string
	ID  string
	// Access is how the noted volume was exported.
	Access Access
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
		if t.Undo && v.isAdopted() {
			faults = append(faults, k.giveBack(ctx, v, t.accessOf(v)))
			continue
		}
		faults = append(faults, k.remove(ctx, v, t.accessOf(v)))
	}
	return errors.Join(faults...)
}

// accessOf returns how one of the volumes was exported. The noted export is the noted volume's.
func (t Target) accessOf(v Volume) Access {
	a := t.Access
	if t.ID != "" && v.ID != t.ID {
		a.ID = ""
	}
	return a
}

// Discard removes one volume that lost against another of the same claim.
func (k *Keeper) Discard(ctx context.Context, v Volume, a Access) error {
	v, err := k.backend.Get(ctx, v.ID)
	if err != nil {
		return IgnoreGone(err)
	}
	return k.remove(ctx, v, a)
}

func (k *Keeper) targets(ctx context.Context, t Target) ([]Volume, error) {
	found, err := k.backend.List(ctx, Filter{UID: t.UID})
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
	v, err := k.backend.Get(ctx, t.ID)
	if err != nil {
		return found, IgnoreGone(err)
	}
	if owner := v.UID(); owner != "" && owner != t.UID {
		return nil, notOurs(v, "remove volume", t.UID)
	}
	return append(found, v), nil
}

// remove takes one volume's export back and deletes the volume.
func (k *Keeper) remove(ctx context.Context, v Volume, a Access) error {
	return IgnoreGone(k.backend.Delete(ctx, v, a))
}
