package volume

import "context"

// Growth says which volume to grow, and to what size.
type Growth struct {
	Named

	SizeGiB int
}

// Grow grows the claim's volume to at least the size, and returns it as it is then.
func (k *Keeper) Grow(ctx context.Context, g Growth) (Volume, error) {
	v, err := k.named(ctx, g.Named, "extend volume")
	if err != nil {
		return Volume{}, err
	}
	return k.backend.Resize(ctx, v, g.SizeGiB, g.Access)
}
