package volume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// keyAdopted marks a volume that existed before its claim. An undo does not delete such a volume.
// Once its PV was created it is a volume like any other.
const keyAdopted = "flex-provisioner.io/adopted"

// keyFormer is the key of the UID of the claim that the volume belonged to before its adoption. An undo
// returns it to that claim.
const keyFormer = "flex-provisioner.io/former-claim-uid"

// adopt makes a volume that an administrator named the claim's own, if it is suitable.
func (k *Keeper) adopt(ctx context.Context, spec Spec) (Volume, error) {
	v, err := k.backend.Get(ctx, spec.Adopt)
	if Is(err, Gone) {
		return Volume{}, refuseAdoption(spec, "it does not exist")
	}
	if err != nil {
		return Volume{}, err
	}
	if spec, err = k.withTypeName(ctx, spec, v); err != nil {
		return Volume{}, err
	}
	if reason := v.whyNotAdopted(spec); reason != "" {
		return Volume{}, refuseAdoption(spec, reason)
	}
	access := spec.Access
	if spec.Former.UID != "" {
		access = spec.Former.Access
		access.Recorded = true
	}
	if v, err = k.backend.Release(ctx, v, access); err == nil {
		v, err = k.backend.Mark(ctx, v, spec.adopted(v.Metadata))
	}
	if err == nil {
		err = k.confirmAdopted(ctx, v.ID, spec)
	}
	if err != nil {
		// No ID is returned, so that no rollback removes a volume that is not the claim's.
		return Volume{}, err
	}
	return v, nil
}

// adopted returns the metadata of a volume that becomes the claim's.
func (s Spec) adopted(metadata map[string]string) map[string]string {
	marked := withoutKeys(metadata, KeyClusterUID, keyFormer)
	maps.Copy(marked, s.stamped().Metadata)
	delete(marked, keyMade)
	marked[keyAdopted] = "true"
	if s.Former.UID != "" {
		marked[keyFormer] = s.Former.UID
	}
	return marked
}

// confirmAdopted returns an error if the volume is not the claim's own, or another client has begun to use
// it. No storage changes marks on the condition that they are still as they were read: where a claim is
// deleted and created again while its run adopts, the run of the new one may have marked and exported the
// volume in between. Its marks are lost then, and those of this claim are removed: an undo would end the
// export by them, and later a claim would be given the volume anew.
func (k *Keeper) confirmAdopted(ctx context.Context, id string, spec Spec) error {
	v, err := k.backend.Get(ctx, id)
	if err != nil || v.UID() == spec.UID && v.State == Free {
		return err
	}
	if v.UID() == spec.UID {
		_, err = k.backend.Mark(ctx, v, unmarked(v.Metadata))
	}
	return errors.Join(taken(id), err)
}

func taken(id string) error {
	return &Error{Kind: Busy, Doing: "adopt volume " + id, Said: "another client has begun to use it"}
}

func refuseAdoption(spec Spec, reason string) error {
	return &Error{Kind: Unsuitable, Doing: "adopt volume " + spec.Adopt, Said: reason}
}

// whyNotAdopted returns why the volume cannot become the claim's, or "".
func (v Volume) whyNotAdopted(spec Spec) string {
	switch why := v.whyOfOthers(spec); {
	case why != "":
		return why
	case v.State != Free && !v.isOf(spec.Former):
		return v.whyNotFree()
	case spec.Type != "" && v.Type != spec.Type:
		return fmt.Sprintf("its volume type is %q, and the storage class has %q", v.Type, spec.Type)
	case !spec.usesZone(v.Zone):
		return fmt.Sprintf("it is in zone %q, and the claim needs a volume in zone %s", v.Zone, anyOf(spec.Zones))
	case v.SizeGiB < spec.SizeGiB:
		return fmt.Sprintf("its size is %d GiB, and the claim requests %d GiB", v.SizeGiB, spec.SizeGiB)
	default:
		return ""
	}
}

// isOf reports whether the volume may still have the export of the deleted claim that it belonged to, and
// shows no other.
func (v Volume) isOf(former Former) bool {
	recorded := former.Access.ID
	isOther := func(id string) bool { return recorded != "" && id != recorded }
	return former.UID != "" && v.UID() == former.UID && v.State == Occupied &&
		v.userBeside(former.Access.Client.Host) == "" && !slices.ContainsFunc(v.Exports, isOther)
}

// whyNotFree returns who keeps the volume from being available, as far as the storage shows it. No
// run takes a volume from another client.
func (v Volume) whyNotFree() string {
	by := slices.Clone(v.Users)
	for _, id := range v.Exports {
		by = append(by, "export "+id)
	}
	why := fmt.Sprintf("its status is %q, not available", v.Status)
	if len(by) > 0 {
		why += " (" + strings.Join(by, ", ") + ")"
	}
	return why + ". Its user must release it first: docs/migrate.md has the commands"
}

// whyOfOthers returns which other claim or cluster the volume belongs to, or "". A copy, such as a
// restored backup, belongs to none, whatever marks of its original it carries.
func (v Volume) whyOfOthers(spec Spec) string {
	switch owner := v.UID(); {
	case v.isCopy():
		return ""
	case v.isOfAnother(spec.ClusterUID):
		return "it belongs to the cluster with the UID " + v.Metadata[KeyClusterUID] + "; if that cluster no longer uses it, set " + KeyClusterUID +
			" and " + KeyUID + " in its metadata to an empty value"
	case owner != "" && owner != spec.UID && owner != spec.CopyOf && owner != spec.Former.UID:
		return "it belongs to claim " + owner + "; if it is only a copy of that claim's volume, set " + KeyUID + " in its metadata to an empty value"
	default:
		return ""
	}
}

// IsAdopted reports whether the volume held data before it was its claim's.
func (v Volume) IsAdopted() bool { return v.Metadata[keyAdopted] == "true" }

// keyPrefix begins the keys that only runs write.
const keyPrefix = "flex-provisioner.io/"

// releaseAdopted removes the claim's marks from an adopted volume, or makes them those of the claim that
// it belonged to before. The volume and its content stay.
func (k *Keeper) releaseAdopted(ctx context.Context, v Volume, a Access) error {
	of := v.UID()
	v, err := k.backend.Release(ctx, v, a)
	if err != nil {
		return IgnoreGone(err)
	}
	metadata := unmarked(v.Metadata)
	if former := v.Metadata[keyFormer]; former != "" {
		metadata = withoutKeys(v.Metadata, keyFormer)
		for key, value := range metadata {
			if strings.HasPrefix(key, keyPrefix) {
				metadata[key] = strings.ReplaceAll(value, of, former) // in the name of its PV, too
			}
		}
	}
	_, err = k.backend.Mark(ctx, v, metadata)
	return IgnoreGone(err)
}

// unmarked returns the metadata without the keys that only runs write.
func unmarked(metadata map[string]string) map[string]string {
	rest := withoutKeys(metadata)
	maps.DeleteFunc(rest, func(key, _ string) bool { return strings.HasPrefix(key, keyPrefix) })
	return rest
}

// withoutKeys returns a copy of the metadata without the keys.
func withoutKeys(metadata map[string]string, keys ...string) map[string]string {
	rest := map[string]string{}
	maps.Copy(rest, metadata)
	maps.DeleteFunc(rest, func(key, _ string) bool { return slices.Contains(keys, key) })
	return rest
}

// OwnersOf returns the UIDs of the claim that a volume belongs to by its metadata, and of the one that it
// belonged to before its adoption. Each may be "".
func (k *Keeper) OwnersOf(ctx context.Context, id string) (owner, former string, err error) {
	v, err := k.backend.Get(ctx, id)
	return v.UID(), v.Metadata[keyFormer], err
}
