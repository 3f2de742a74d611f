package volume

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Wait pauses for d, or until the context ends, which it returns as an error.
type Wait func(ctx context.Context, d time.Duration) error

// Keeper makes, exports, grows and removes the volumes of claims. Every method can be repeated.
type Keeper struct {
	backend Backend
	wait    Wait
}

// NewKeeper returns a Keeper of the volumes in a storage.
func NewKeeper(backend Backend, wait Wait) *Keeper { return &Keeper{backend: backend, wait: wait} }

// List lists the volumes of a cluster, or of all claims where none is named, oldest first.
func (k *Keeper) List(ctx context.Context, cluster string) ([]Volume, error) {
	all, err := k.backend.List(ctx, Filter{Cluster: cluster})
	slices.SortFunc(all, byAge)
	return all, err
}

func byAge(a, b Volume) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) }

// Export makes the volume reachable, unless an earlier run did. It returns the Access that is
// needed to remove the export. Of an adopted volume it fails if another claim has it by now: the export
// of that one's run may have been taken for the claim's own, see confirmAdopted.
func (k *Keeper) Export(ctx context.Context, v Volume, a Access) (Connection, Access, error) {
	c, held, err := k.backend.Export(ctx, v, a)
	if err != nil || !v.IsAdopted() {
		return c, held, err
	}
	if now, err := k.backend.Get(ctx, v.ID); err != nil || now.UID() != v.UID() {
		return Connection{}, a, cmp.Or(err, taken(v.ID))
	}
	return c, held, nil
}

// Reach returns the connection of the claim's volume, which an earlier run exported.
func (k *Keeper) Reach(ctx context.Context, n Named) (Connection, error) {
	v, err := k.named(ctx, n, "reach volume")
	if err != nil {
		return Connection{}, err
	}
	a := n.Access
	a.Recorded = true
	c, _, err := k.backend.Export(ctx, v, a)
	return c, err
}
