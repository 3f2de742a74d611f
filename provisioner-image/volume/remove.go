package volume

import (
	"context"
	"errors"
)

// Target says what to remove: every volume of the claim, and the one that is recorded on the PV. The metadata of the
// recorded one may have been edited since.
type Target struct {
	UID string
	ID  string
	// Access is how the recorded volume was exported.
	Access Access
	// Undo is true if no claim was ever bound to a PV, so that adopted volumes are released.
	Undo bool
}

// Remove removes every volume that was made for a claim, from whatever state it is in. A volume that does not exist
// counts as removed.
func (k *Keeper) Remove(ctx context.Context, t Target) error {
	found, err := k.targets(ctx, t)
	if err != nil {
		return err
	}
	var errs []error
	for _, v := range found {
		if t.Undo && v.IsAdopted() {
			errs = append(errs, k.releaseAdopted(ctx, v, t.accessOf(v)))
			continue
		}
		errs = append(errs, k.remove(ctx, v, t.accessOf(v)))
	}
	return errors.Join(errs...)
}

// accessOf returns how one of the volumes was exported. The recorded export is the recorded volume's.
func (t Target) accessOf(v Volume) Access {
	a := t.Access
	if t.ID != "" && v.ID != t.ID {
		a.ID = ""
	}
	return a
}

// Discard removes a volume of which an overlapping run has made another.
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
	return k.withRecorded(ctx, found, t)
}

// withRecorded adds the recorded volume. One with another claim's UID is not ours to delete.
func (k *Keeper) withRecorded(ctx context.Context, found []Volume, t Target) ([]Volume, error) {
	if t.ID == "" {
		return found, nil
	}
	v, err := k.backend.Get(ctx, t.ID)
	if err != nil {
		return found, IgnoreGone(err)
	}
	switch owner := v.UID(); {
	case owner == "" && t.Undo:
		return found, nil // an adopted one, which an earlier run has released
	case owner != "" && owner != t.UID:
		return nil, notOurs(v, "remove volume", t.UID)
	}
	return append(found, v), nil
}

// remove deletes one volume with its export. A volume that does not exist counts as deleted.
func (k *Keeper) remove(ctx context.Context, v Volume, a Access) error {
	return IgnoreGone(k.backend.Delete(ctx, v, a))
}
