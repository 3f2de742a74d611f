package volume

import "context"

// Backend is what the domain needs of a storage. Its errors are *Error. Every method can be called again after it
// failed, or after its answer was lost.
type Backend interface {
	// List lists the volumes that the filter lets pass, and no others.
	List(ctx context.Context, filter Filter) ([]Volume, error)
	// Get returns one volume.
	Get(ctx context.Context, id string) (Volume, error)
	// Create asks for a new volume. It need not be usable yet.
	Create(ctx context.Context, spec Spec) (Volume, error)
	// Ready waits until the volume can be made reachable by the access, and returns it as it is then. The error
	// says why it never can, in the storage's own words where it has any.
	Ready(ctx context.Context, v Volume, a Access) (Volume, error)
	// Export keeps everybody else from using the volume and makes it reachable. What an earlier run exported is
	// used again. The Access that it returns is the one to record. By a recorded access it only returns the
	// Connection of what was exported.
	Export(ctx context.Context, v Volume, a Access) (Connection, Access, error)
	// Assign takes the volume's export back, if there is one, and changes the metadata, which say whose the
	// volume is.
	Assign(ctx context.Context, v Volume, a Access, change func(metadata map[string]string)) (Volume, error)
	// Resize grows the volume to that size, in use or not, and waits until it has it. One that is large enough
	// stays as it is. The access works afterwards as it did before.
	Resize(ctx context.Context, v Volume, gib int, a Access) (Resized, error)
	// Delete takes the volume's export back, deletes the volume and waits until it is gone.
	Delete(ctx context.Context, v Volume, a Access) error
}

// Filter says which volumes to list: a claim's, or a cluster's. The zero Filter lets the volumes of all claims
// pass.
type Filter struct {
	UID     string
	Cluster string
}

// Resized is a volume that has grown.
type Resized struct {
	Volume
	// Caveat is what may still hide the new size, in words for the claim's user; empty where nothing does.
	Caveat string
}
