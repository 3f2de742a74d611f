package volume

import (
	"context"
	"fmt"
)

// Named is the volume that a PV names, and what is known of the PV's claim.
type Named struct {
	UID, ID string
	// ClusterUID is empty where it is not known.
	ClusterUID string
	// Place is where the volume was made, as far as it is noted.
	Place  Place
	Access Access
}

// named returns the volume that a PV names, or an error if it is not the claim's.
func (k *Keeper) named(ctx context.Context, n Named, doing string) (Volume, error) {
	v, err := k.get(ctx, n.ID, doing, n.Place)
	if err == nil {
		err = n.check(v, doing)
	}
	return v, err
}

// check returns an error if the volume that a PV names is not the claim's. A PV can name any volume
// that the login reaches, and one that says nothing of a claim may be the disk of a server: a thief
// of any provisioner's token could once have it deleted. The config's key adopt proves nothing
// here: the claim's name comes from the PV, and a thief who wrote there the name of another claim
// once had the volume deleted that adopt named for that claim
// (TestNoVolumeIsTouchedThatDoesNotSayWhoseItIs).
func (n Named) check(v Volume, doing string) error {
	refusal := func(why string, cause error) error {
		return &Error{Kind: Misconfigured, Doing: doing + " " + v.ID + ", which the PV names", Said: "by its metadata the volume " + why, Err: cause}
	}
	switch owner := v.UID(); {
	case owner == "":
		return refusal("belongs to no claim", &UnmarkedError{UID: n.UID, ID: v.ID})
	case owner != "" && owner != n.UID:
		return refusal(fmt.Sprintf("belongs to claim %q, not to %s", owner, n.UID), nil)
	case v.isOfAnother(n.ClusterUID):
		return refusal(fmt.Sprintf("belongs to the cluster with the UID %s, not to %s. Remedy: if it belongs to this cluster now, change %s",
			v.Metadata[KeyClusterUID], n.ClusterUID, KeyClusterUID), nil)
	default:
		return nil
	}
}

// UnmarkedError is the cause where the volume that a PV names says nothing of a claim.
type UnmarkedError struct{ UID, ID string }

// Error names what the volume lacks.
func (u *UnmarkedError) Error() string { return "it lacks " + KeyUID + "=" + u.UID }
