package volume

import (
	"context"
	"fmt"
)

// CheckSource refuses a source that cannot be cloned: one that does not exist, belongs to another
// claim than it should, is larger, of another type, or in a zone where its clone may not be.
func (k *Keeper) CheckSource(ctx context.Context, spec Spec) error {
	if spec.Source.VolumeID == "" {
		return nil
	}
	v, spec, err := k.source(ctx, spec)
	var why string
	switch {
	case Is(err, Gone):
		why = "the source's volume is not in this storage"
	case err != nil:
		return err
	default:
		why = v.whyNotCloned(spec)
	}
	if why == "" {
		return nil
	}
	return &Error{Kind: Unsuitable, Doing: "clone volume " + spec.Source.VolumeID, Said: why}
}

// whyNotCloned returns why the volume cannot be the source of the one that the claim wants, or "".
func (v Volume) whyNotCloned(spec Spec) string {
	switch {
	case v.UID() != spec.Source.UID:
		return "it does not belong to the source claim"
	case v.State == Failed:
		return fmt.Sprintf("the source's volume is in status %q", v.Status)
	case spec.Type != "" && v.Type != spec.Type:
		return fmt.Sprintf("the source has the volume type %q, and the storage class has %q", v.Type, spec.Type)
	case v.SizeGiB > spec.SizeGiB:
		return fmt.Sprintf("the source has %d GiB, and the claim requests %d GiB: request at least as much", v.SizeGiB, spec.SizeGiB)
	case !spec.usesZone(v.Zone):
		return fmt.Sprintf("the source is in zone %[1]q, where its clone is created, and the claim needs a volume in zone %[2]s. Remedy: delete the claim, and create it"+
			" again for a pod on a node in zone %[1]q, or with a source in zone %[2]s", v.Zone, anyOf(spec.Zones))
	default:
		return ""
	}
}

// source returns the volume that is to be cloned, and the spec with its type by name.
func (k *Keeper) source(ctx context.Context, spec Spec) (Volume, Spec, error) {
	v, err := k.get(ctx, spec.Source.VolumeID, "clone volume", spec.Source.Place)
	if err == nil {
		spec, err = k.withTypeName(ctx, spec, v)
	}
	return v, spec, err
}

// withTypeName returns the spec with its type by name, as the volume v has it: a class may give the
// type's ID.
func (k *Keeper) withTypeName(ctx context.Context, spec Spec, v Volume) (Spec, error) {
	if spec.Type == "" || spec.Type == v.Type {
		return spec, nil
	}
	name, err := k.backend.TypeName(ctx, spec.Type)
	if err == nil {
		spec.Type = name
	}
	return spec, IgnoreGone(err)
}
