package volume

import "context"

// Export reserves the volume, unless an earlier run did, and makes it reachable for the connector.
func (k *Keeper) Export(ctx context.Context, v Volume, c Connector) (Connection, error) {
	if !v.held() {
		if err := k.reserve(ctx, v); err != nil {
			return Connection{}, err
		}
	}
	return k.storage.Initialize(ctx, v.ID, c)
}

// reserve looks at the volume when the storage refuses or does not answer: a run that overlaps with
// this one, or this very request, may have reserved it for the same claim.
func (k *Keeper) reserve(ctx context.Context, v Volume) error {
	err := k.storage.Reserve(ctx, v.ID)
	if err == nil {
		return nil
	}
	if now, lookErr := k.storage.Get(ctx, v.ID); lookErr == nil && now.held() {
		return nil
	}
	return err
}

// Reach tells again how to reach a volume that a run has exported.
func (k *Keeper) Reach(ctx context.Context, id string, c Connector) (Connection, error) {
	return k.storage.Initialize(ctx, id, c)
}
