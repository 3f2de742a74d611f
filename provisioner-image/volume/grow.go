package volume

import (
	"context"
	"fmt"
)

// Growth says which volume to grow, how it is exported, and to what size.
type Growth struct {
	UID, ID string
	// ClusterUID is empty where it is not known.
	ClusterUID string
	// Place is where the volume was made, as far as it is noted.
	Place   Place
	SizeGiB int
	Access  Access
}

// Grow grows the claim's volume to at least the size, and returns it as it is then.
func (k *Keeper) Grow(ctx context.Context, g Growth) (Volume, error) {
	v, err := k.get(ctx, g.ID, "extend volume", g.Place)
	if err != nil {
		return Volume{}, err
	}
	if v.UID() != g.UID {
		return Volume{}, notOurs(v, "extend volume", g.UID)
	}
	if v.isOfAnother(g.ClusterUID) {
		return Volume{}, notThisClusters(v, "extend volume", g.ClusterUID)
	}
	return k.backend.Resize(ctx, v, g.SizeGiB, g.Access)
}

func notOurs(v Volume, doing, uid string) error {
	return &Error{
		Kind:  Misconfigured,
		Doing: doing + " " + v.ID + ", which is noted on the PV",
		Said:  fmt.Sprintf("the volume's metadata say that it belongs to claim %q, not to %s", v.UID(), uid),
	}
}

func notThisClusters(v Volume, doing, uid string) error {
	return &Error{
		Kind:  Misconfigured,
		Doing: doing + " " + v.ID + ", which is noted on the PV",
		Said: fmt.Sprintf("the volume's metadata say that it belongs to the cluster with the UID %s, not to %s; if it is this cluster's now, change %s",
			v.Metadata[KeyClusterUID], uid, KeyClusterUID),
	}
}
