package volume

import (
	"context"
	"fmt"
	"maps"
)

// keyAdopted marks a volume that existed before its claim. An undo gives such a volume back. Once a PV was written
// it is a volume like any other.
const keyAdopted = "flex-provisioner.io/adopted"

// takeOver marks a volume that an administrator named as the claim's own, after checking that it can be.
func (k *Keeper) takeOver(ctx context.Context, spec Spec) (Volume, error) {
	v, err := k.backend.Get(ctx, spec.Adopt)
	if Is(err, Gone) {
		return Volume{}, refuseAdoption(spec, "it does not exist")
	}
	if err != nil {
		return Volume{}, err
	}
	if reason := v.whyNotAdopted(spec); reason != "" {
		return Volume{}, refuseAdoption(spec, reason)
	}
	v, err = k.backend.Assign(ctx, v, spec.Access, func(metadata map[string]string) {
		maps.Copy(metadata, spec.Metadata)
		metadata[keyAdopted] = "true"
	})
	if err != nil {
		// Without an ID, so that no rollback removes what may not be the claim's.
		return Volume{}, err
	}
	return v, nil
}

func refuseAdoption(spec Spec, reason string) error {
	return &Error{Kind: Unsuitable, Doing: "adopt volume " + spec.Adopt, Said: reason}
}

// whyNotAdopted says why the volume cannot become the claim's, or nothing.
func (v Volume) whyNotAdopted(spec Spec) string {
	switch owner := v.UID(); {
	case owner != "" && owner != spec.UID:
		return "it belongs to claim " + owner
	case v.State != Free:
		return fmt.Sprintf("its status is %q, not available", v.Status)
	case spec.Type != "" && v.Type != spec.Type:
		return fmt.Sprintf("it is of volume type %q, the storage class has %q", v.Type, spec.Type)
	case v.SizeGiB < spec.SizeGiB:
		return fmt.Sprintf("it has %d GiB, the claim asks for %d", v.SizeGiB, spec.SizeGiB)
	default:
		return ""
	}
}

func (v Volume) isAdopted() bool { return v.Metadata[keyAdopted] == "true" }

// giveBack takes the claim's marks off an adopted volume, and leaves it there with its content.
func (k *Keeper) giveBack(ctx context.Context, v Volume, a Access) error {
	_, err := k.backend.Assign(ctx, v, a, func(metadata map[string]string) {
		delete(metadata, KeyUID)
		delete(metadata, keyAdopted)
	})
	return IgnoreGone(err)
}
