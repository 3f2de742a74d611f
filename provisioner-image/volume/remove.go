package volume

import (
	"context"
	"errors"
	"fmt"
)

// Target says what to remove: every volume of the claim, and the one that was noted when it was made,
// whose metadata someone may have edited since.
type Target struct {
	UID       string
	ID        string
	Connector Connector
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
		faults = append(faults, k.remove(ctx, v, t.Connector))
	}
	return errors.Join(faults...)
}

// Discard removes one volume that lost against another of the same claim.
func (k *Keeper) Discard(ctx context.Context, v Volume, c Connector) error {
	v, err := k.storage.Get(ctx, v.ID)
	if err != nil {
		return unlessGone(err)
	}
	return k.remove(ctx, v, c)
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
		return nil, &Error{
			Kind:  Misconfigured,
			Doing: "remove volume " + t.ID + ", which is noted on the PV",
			Said:  fmt.Sprintf("the volume's metadata say that it belongs to claim %s, not to %s", owner, t.UID),
		}
	}
	return append(found, v), nil
}

// remove takes one volume back: terminate, unreserve, delete, and wait until it is gone.
func (k *Keeper) remove(ctx context.Context, v Volume, c Connector) error {
	v, err := k.settled(ctx, v)
	if err == nil && v.held() {
		err = k.release(ctx, v, c)
	}
	if err == nil && v.Status == inUse {
		err = &Error{
			Kind:  Busy,
			Doing: "remove volume " + v.ID,
			Said:  "it is in use: someone attached it, and has to detach it first",
		}
	}
	if err == nil && v.Status != deleting {
		err = k.storage.Delete(ctx, v.ID)
	}
	if err == nil {
		_, err = k.until(ctx, v, stillThere)
	}
	return unlessGone(err)
}

// release takes the export and the reservation back. The storage may do the second with the first; to
// repeat it is harmless.
func (k *Keeper) release(ctx context.Context, v Volume, c Connector) error {
	if err := k.storage.Terminate(ctx, v.ID, c); err != nil {
		return err
	}
	return k.storage.Unreserve(ctx, v.ID)
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
