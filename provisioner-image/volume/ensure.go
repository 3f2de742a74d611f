package volume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Ensure returns the claim's volume, ready to be exported: the one that an earlier run made, or a
// new one. If it fails and returns a volume with an ID, that volume exists. It also returns the
// volumes that carry the claim's UID and were left alone.
func (k *Keeper) Ensure(ctx context.Context, spec Spec) (Volume, []Left, error) {
	v, left, err := k.existing(ctx, spec)
	switch {
	case err == nil && v.ID == "" && spec.Adopt != "":
		v, err = k.adopt(ctx, spec)
	case err == nil && v.ID == "":
		v, err = k.create(ctx, spec)
	}
	if err != nil {
		return v, left, err
	}
	if v, err = k.backend.Ready(ctx, v, spec.Access); err == nil {
		err = v.checkZone(spec) // the answer to a create need not have the zone
	}
	return v, left, err
}

// owner returns what is known of the volumes that runs made for the spec.
func (s Spec) owner() owner {
	of := owner{uid: s.UID, cluster: s.ClusterUID, name: s.Name, adopt: s.Adopt, host: s.Access.Client.Host}
	if !s.Asked.IsZero() {
		of.stamp = s.Asked.UTC().Format(time.RFC3339Nano)
	}
	return of
}

// existing returns the volume that an earlier run made, or none. It removes failed volumes: they
// have no content, and count against the quota.
func (k *Keeper) existing(ctx context.Context, spec Spec) (Volume, []Left, error) {
	found, left, err := k.find(ctx, spec.owner())
	if err != nil {
		return Volume{}, nil, err
	}
	var usable []Volume
	for _, v := range found {
		if v.State == Deleting {
			continue
		}
		if v.State != Failed || v.IsAdopted() {
			usable = append(usable, v)
			continue
		}
		if err := k.remove(ctx, v, spec.Access); err != nil {
			return v, left, err
		}
	}
	v, err := k.keepOldest(ctx, usable, spec)
	return v, left, err
}

// find lists the volumes that carry the claim's UID, oldest first: those that its runs made, and
// the others.
func (k *Keeper) find(ctx context.Context, of owner) ([]Volume, []Left, error) {
	found, err := k.backend.List(ctx, Filter{UID: of.uid})
	if err != nil {
		return nil, nil, err
	}
	found = slices.DeleteFunc(found, func(v Volume) bool { return v.UID() != of.uid })
	slices.SortFunc(found, byAge)
	ours, left := of.sift(found)
	return ours, left, nil
}

// keepOldest removes all volumes but the first. Overlapping runs may both create a volume; both of
// them keep the oldest. If that has other content than the spec asks for, all of them stay, and none
// is returned, so that no rollback removes it: another run may be about to create a PV for it.
func (k *Keeper) keepOldest(ctx context.Context, found []Volume, spec Spec) (Volume, error) {
	if len(found) == 0 {
		return Volume{}, nil
	}
	if err := found[0].checkContent(spec); err != nil {
		return Volume{}, err
	}
	for _, spare := range found[1:] {
		if err := k.remove(ctx, spare, spec.Access); err != nil {
			return found[0], fmt.Errorf("delete a second volume of the same claim: %w", err)
		}
	}
	return found[0], nil
}

// create requests a volume and then lists what exists: the answer may have been lost, and an
// overlapping run may have created one too. It never requests a second volume.
func (k *Keeper) create(ctx context.Context, spec Spec) (Volume, error) {
	of := spec.owner()
	made, err := k.backend.Create(ctx, spec.stamped())
	if err != nil && !mayHaveHappened(err) {
		return Volume{}, err
	}
	of.made = made.ID
	found, listErr := k.listWith(ctx, of)
	if listErr != nil {
		return made, errors.Join(err, listErr)
	}
	if len(found) == 0 {
		return Volume{}, err
	}
	kept, err := k.keepOldest(ctx, found, spec)
	if err != nil || spec.Asked.IsZero() || kept.Metadata[keyMade] != of.stamp || apart(kept.Created, spec.Asked) < clocks/2 {
		return kept, err
	}
	return k.restamp(ctx, kept)
}

// stamped returns the spec with the marks of cluster and time.
func (s Spec) stamped() Spec {
	metadata := map[string]string{keyMade: s.owner().stamp, KeyClusterUID: s.ClusterUID}
	maps.DeleteFunc(metadata, func(_, value string) bool { return value == "" })
	maps.Copy(metadata, s.Metadata)
	s.Metadata = metadata
	return s
}

// restamp marks the volume by the storage's clock where it differs from ours: a later run would
// take it for a copy.
func (k *Keeper) restamp(ctx context.Context, v Volume) (Volume, error) {
	metadata := maps.Clone(v.Metadata)
	metadata[keyMade] = v.Created.UTC().Format(time.RFC3339Nano)
	marked, err := k.backend.Mark(ctx, v, metadata)
	if err != nil {
		return v, err
	}
	return marked, nil
}

// A list may not show at once what the storage just made, for example if its database is
// replicated.
const (
	maxLists   = 5
	firstPause = 100 * time.Millisecond
)

// listWith lists the claim's volumes until the list shows the new one.
func (k *Keeper) listWith(ctx context.Context, of owner) ([]Volume, error) {
	pause := firstPause
	for range maxLists {
		found, _, err := k.find(ctx, of)
		found = slices.DeleteFunc(found, func(v Volume) bool { return v.State == Deleting })
		if err != nil || of.made == "" || slices.ContainsFunc(found, func(v Volume) bool { return v.ID == of.made }) {
			return found, err
		}
		if err := k.wait(ctx, pause); err != nil {
			return nil, fmt.Errorf("wait for volume %s to appear in the list of volumes: %w", of.made, err)
		}
		pause *= 2
	}
	return nil, unfindable(of.made)
}

// unfindable is the error of a storage whose list does not show what it just made. With it every
// later run would make another volume.
func unfindable(id string) error {
	return &Error{
		Kind:  Misconfigured,
		Doing: "find volume " + id + " by the claim's UID after creating it",
		Said:  "the list of volumes does not contain it: the storage must allow clients to filter volumes by metadata",
	}
}
