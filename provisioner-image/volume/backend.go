package volume

import "context"

// Backend is what the domain needs of a storage. Its errors are of type *Error. Every method can be
// called again after it failed, or after its answer was lost.
type Backend interface {
	// Place returns which storage answers.
	Place() Place
	// List lists the volumes that match the filter, and no others.
	List(ctx context.Context, filter Filter) ([]Volume, error)
	// ListFirst lists volumes that carry the UID of a cluster, at most so many, and reports whether
	// these are all.
	ListFirst(ctx context.Context, clusterUID string, most int) (found []Volume, areAll bool, err error)
	// Get returns one volume.
	Get(ctx context.Context, id string) (Volume, error)
	// TypeName returns the name of a volume type, which may be given by its ID.
	TypeName(ctx context.Context, nameOrID string) (string, error)
	// Create requests a new volume. The volume need not be usable yet.
	Create(ctx context.Context, spec Spec) (Volume, error)
	// Ready waits until the volume can be exported, and returns it as it is then. The error says
	// why it never can, with the storage's own message if there is one.
	Ready(ctx context.Context, v Volume, a Access) (Volume, error)
	// Export keeps other clients from using the volume and makes it reachable. It uses the export
	// of an earlier run, if there is one. It returns the Access to record. With a recorded Access
	// it makes nothing, and returns the Connection of that export.
	Export(ctx context.Context, v Volume, a Access) (Connection, Access, error)
	// Release removes the volume's export, if there is one, and returns the volume as it is then. It
	// returns an error if the volume is still in use, or is another claim's by now.
	Release(ctx context.Context, v Volume, a Access) (Volume, error)
	// Mark replaces the metadata, which say whose volume it is.
	Mark(ctx context.Context, v Volume, metadata map[string]string) (Volume, error)
	// Resize grows the volume to at least that size, in use or not, and waits until it has it. The
	// export works afterwards as before.
	Resize(ctx context.Context, v Volume, gib int, a Access) (Volume, error)
	// Delete removes the volume's export, deletes the volume and waits until it no longer exists.
	Delete(ctx context.Context, v Volume, a Access) error
}

// Filter selects the volumes of a claim or of a cluster. The zero Filter selects the volumes of all
// claims.
type Filter struct {
	UID     string
	Cluster string
}
