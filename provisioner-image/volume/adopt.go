package volume

import (
	"context"
	"fmt"
	"maps"
)

// keyAdopted marks a volume that was there before its claim. What takes the claim back gives such a
// volume back, until a PV was written: from then on it is a volume like any other.
const keyAdopted = "flex-provisioner.io/adopted"

// takeOver marks a volume that an administrator named as the claim's own, after checking that it can be.
func (k *Keeper) takeOver(ctx context.Context, spec Spec) (Volume, error) {
	v, err := k.storage.Get(ctx, spec.Adopt)
	if Is(err, Gone) {
		return Volume{}, refuseAdoption(spec, "it does not exist")
	}
	if err != nil {
		return Volume{}, err
	}
	if reason := v.unfitFor(spec); reason != "" {
		return Volume{}, refuseAdoption(spec, reason)
	}
	all := map[string]string{}
	maps.Copy(all, v.Metadata)
	maps.Copy(all, spec.Metadata)
	all[keyAdopted] = "true"
	if err := k.storage.SetMetadata(ctx, v.ID, all); err != nil {
		return Volume{}, err
	}
	v.Metadata = all
	return v, nil
}

func refuseAdoption(spec Spec, reason string) error {
	return &Error{Kind: Unsuitable, Doing: "adopt volume " + spec.Adopt, Said: reason}
}

func (v Volume) unfitFor(spec Spec) string {
	switch owner := v.UID(); {
	case owner != "" && owner != spec.UID:
		return "it belongs to claim " + owner
	case v.Status != available:
		return fmt.Sprintf("its status is %q, not available", v.Status)
	case spec.Type != "" && v.Type != spec.Type:
		return fmt.Sprintf("it is of volume type %q, the storage class has %q", v.Type, spec.Type)
	case v.SizeGiB < spec.SizeGiB:
		return fmt.Sprintf("it has %d GiB, the claim asks for %d", v.SizeGiB, spec.SizeGiB)
	default:
		return ""
	}
}

func (v Volume) adopted() bool { return v.Metadata[keyAdopted] == "true" }

// giveBack ends the claim's hold on an adopted volume and leaves it there with its content.
func (k *Keeper) giveBack(ctx context.Context, v Volume, h Hold) error {
	v, err := k.settled(ctx, v)
	if err == nil {
		v, err = k.release(ctx, v, h)
	}
	if err != nil {
		return unlessGone(err)
	}
	rest := map[string]string{}
	maps.Copy(rest, v.Metadata)
	delete(rest, KeyUID)
	delete(rest, keyAdopted)
	return unlessGone(k.storage.SetMetadata(ctx, v.ID, rest))
}
