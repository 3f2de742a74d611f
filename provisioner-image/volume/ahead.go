package volume

import (
	"context"
	"sync"
)

// mostAhead is how many volumes a cluster may have to be listed for a batch. Where it has more, a
// list for each claim costs the storage less.
const mostAhead = 250

// Ahead returns a Keeper for the claims of a batch. It lists the volumes of their cluster once, by
// which it answers where it would list those of one claim, and it takes the storage's answer to a
// create for what exists then. A volume without the cluster's UID, which an older image made, is
// not found so. If creates is false, a claim without a volume is therefore asked for again: a
// removal that finds nothing would leave that volume for ever. Where the cluster's UID is not
// known, the cluster has many volumes, or the storage does not answer, each claim's volumes are
// listed as in a run of its own.
func (k *Keeper) Ahead(ctx context.Context, clusterUID string, creates bool) (*Keeper, error) {
	if clusterUID == "" {
		return k, nil
	}
	found, areAll, err := k.backend.ListFirst(ctx, clusterUID, mostAhead)
	switch {
	case Is(err, Unavailable):
		return k, nil
	case err != nil:
		return nil, err
	case !areAll:
		return k, nil
	}
	known := map[string][]Volume{}
	for _, v := range found {
		known[v.UID()] = append(known[v.UID()], v)
	}
	return NewKeeper(&ahead{Backend: k.backend, creates: creates, known: known, old: map[string]bool{}}, k.wait), nil
}

// ahead is a Backend that knows the volumes of its claims before they are asked for.
type ahead struct {
	Backend

	// creates is set if a claim that has no volume gets one.
	creates bool

	mu sync.Mutex
	// known are volumes by the UID of their claim.
	known map[string][]Volume
	// old has the claims whose known volumes were listed once. What has happened to them since is
	// not known.
	old map[string]bool
}

// List lists the volumes of a claim, the first time without a request.
func (a *ahead) List(ctx context.Context, f Filter) ([]Volume, error) {
	if found, ok := a.take(f.UID); ok {
		return found, nil
	}
	return a.Backend.List(ctx, f)
}

func (a *ahead) take(uid string) ([]Volume, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if uid == "" || a.old[uid] {
		return nil, false
	}
	a.old[uid] = true
	found := a.known[uid]
	return found, a.creates || len(found) > 0
}

// Create requests a new volume. If the storage describes what it makes, no list need show it.
func (a *ahead) Create(ctx context.Context, spec Spec) (Volume, error) {
	v, err := a.Backend.Create(ctx, spec)
	if err == nil && v.UID() == spec.UID && !v.Created.IsZero() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.known[spec.UID], a.old[spec.UID] = []Volume{v}, false
	}
	return v, err
}
