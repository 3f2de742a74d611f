package volume

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Target says what to remove.
type Target struct {
	UID string
	// ClusterUID is empty where it is not known.
	ClusterUID string
	// ID is the volume that is known to be the claim's. With Noted it is the one that the PV names,
	// and no other is removed.
	ID    string
	Noted bool
	// Place is where that volume was made, as far as it is noted.
	Place Place
	// Name is the name that a run gives, and Adopt the volume that the config names for the claim.
	Name, Adopt string
	// Before is when the PV was created, if there is one.
	Before time.Time
	// Access is how the recorded volume was exported.
	Access Access
	// Undo is true if no claim was ever bound to a PV, so that adopted volumes are released.
	Undo bool
	// Only is the ID of the volume that an audit has found, empty for none. No other is removed.
	Only string
	// seen are volumes that an earlier look has judged.
	seen []Volume
}

// Remove removes the volume that the PV names, from whatever state it is in. Where no PV names one
// it removes every volume that runs made for the claim. A volume that does not exist counts as
// removed. Remove returns the volumes that carry the claim's UID and were left alone.
func (k *Keeper) Remove(ctx context.Context, t Target) ([]Left, error) {
	found, left, err := k.targets(ctx, t)
	if err == nil {
		err = k.removeAll(ctx, t, found)
	}
	if err != nil || !t.Undo || t.ID != "" {
		return left, err
	}
	for _, l := range left {
		found = append(found, l.Volume)
	}
	late, err := k.lookAgain(ctx, t, found)
	return append(left, late...), err
}

// latePause is how much later an undo looks a second time: the storage may still be executing a
// create of a run that was killed, or not list yet what it made.
const latePause = 3 * time.Second

// lookAgain removes what has appeared after the first look. It is the last one: the record of the
// claim is released then. What was seen before is not looked at again: a copy whose original has
// just been deleted would look like an original.
func (k *Keeper) lookAgain(ctx context.Context, t Target, seen []Volume) ([]Left, error) {
	t.seen = seen
	if err := k.wait(ctx, latePause); err != nil {
		return nil, fmt.Errorf("wait before listing the volumes of claim %s again: %w", t.UID, err)
	}
	found, left, err := k.targets(ctx, t)
	if err != nil {
		return left, err
	}
	return left, k.removeAll(ctx, t, found)
}

func (k *Keeper) removeAll(ctx context.Context, t Target, found []Volume) error {
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

// accessOf returns how one of the volumes was exported. The recorded export is the recorded
// volume's.
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

// targets returns what to remove, and what carries the claim's UID and stays.
func (k *Keeper) targets(ctx context.Context, t Target) ([]Volume, []Left, error) {
	found, left, err := k.find(ctx, owner{
		uid: t.UID, cluster: t.ClusterUID, name: t.Name, adopt: t.Adopt, made: t.ID, host: t.Access.Client.Host, before: t.Before, seen: t.seen,
	})
	if err != nil {
		return nil, nil, err
	}
	if t.Noted {
		found, left = t.onlyNoted(found, left)
	}
	if t.Only != "" {
		return t.onlyListed(found, left)
	}
	for _, v := range found {
		if v.ID == t.ID {
			return found, left, nil
		}
	}
	found, err = k.withRecorded(ctx, found, t)
	return found, left, err
}

// onlyNoted leaves every volume but the one that the PV names, whatever is known of the others.
func (t Target) onlyNoted(found []Volume, left []Left) (noted []Volume, others []Left) {
	leave := func(v Volume) {
		others = append(others, Left{Volume: v, Why: "the PersistentVolume names another volume, " + t.ID})
	}
	for _, v := range found {
		if v.ID == t.ID {
			noted = append(noted, v)
			continue
		}
		leave(v)
	}
	for _, l := range left {
		leave(l.Volume)
	}
	return noted, others
}

// onlyListed leaves every volume but the one that an audit has found. It returns an error if that
// one is not to be removed.
func (t Target) onlyListed(found []Volume, left []Left) ([]Volume, []Left, error) {
	for _, l := range left {
		if l.ID == t.Only {
			return nil, nil, &Error{Kind: Misconfigured, Doing: "remove volume " + l.ID, Said: l.Why}
		}
	}
	var listed []Volume
	for _, v := range found {
		if v.ID == t.Only {
			listed = append(listed, v)
			continue
		}
		left = append(left, Left{Volume: v, Why: "the audit has found volume " + t.Only})
	}
	return listed, left, nil
}

// withRecorded adds the recorded volume, if it is the claim's.
func (k *Keeper) withRecorded(ctx context.Context, found []Volume, t Target) ([]Volume, error) {
	if t.ID == "" {
		return found, nil
	}
	v, err := k.get(ctx, t.ID, "delete volume", t.Place)
	if err != nil {
		return found, IgnoreGone(err)
	}
	if t.Undo && v.UID() != t.UID && (v.UID() == "" || v.IsAdopted()) {
		return found, nil // an adopted one, which an earlier run has released
	}
	if err := (Named{UID: t.UID, ID: t.ID, ClusterUID: t.ClusterUID}).check(v, "delete volume"); err != nil {
		return nil, err
	}
	return append(found, v), nil
}

// remove deletes one volume with its export. A volume that does not exist counts as deleted.
func (k *Keeper) remove(ctx context.Context, v Volume, a Access) error {
	return IgnoreGone(k.backend.Delete(ctx, v, a))
}
