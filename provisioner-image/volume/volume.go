// Package volume is the domain: what a volume is to a claim, and how one is made, made reachable and
// removed so that every step can be repeated after any interruption. It knows no storage and no
// Kubernetes, and imports nothing of ours.
package volume

import (
	"context"
	"time"
)

// KeyUID is the key in a volume's metadata that holds the UID of its claim. It is how a rerun finds
// what an earlier run made, since names are not unique in a storage.
const KeyUID = "flex-provisioner.io/claim-uid"

// KeyCluster is the key of the Kubernetes cluster's name, by which a cluster's volumes are listed.
const KeyCluster = "flex-provisioner.io/cluster"

// Volume is a volume as the storage describes it.
type Volume struct {
	ID       string
	Name     string
	Status   string
	SizeGiB  int
	Type     string
	Zone     string
	Metadata map[string]string
	Created  time.Time
}

// UID is the UID of the claim that the volume was made for.
func (v Volume) UID() string { return v.Metadata[KeyUID] }

// Spec is the volume that a claim wants.
type Spec struct {
	UID      string
	Cluster  string
	Name     string
	SizeGiB  int
	Type     string
	Zone     string
	Metadata map[string]string
	// Hints are for the storage's scheduler.
	Hints map[string]any
	// Source is what the content is copied from, nothing for an empty volume.
	Source Source
	// Adopt is the ID of a volume that is there already and becomes the claim's.
	Adopt string
	// Hold is how the volume is exported, and how a spare one is taken back.
	Hold Hold
}

// Filled tells whether the volume has content from the beginning.
func (s Spec) Filled() bool { return s.Source != Source{} || s.Adopt != "" }

// Source is what a new volume is a copy of: another claim's volume, or a snapshot.
type Source struct {
	VolumeID string
	// UID is the claim that the other volume must belong to.
	UID        string
	SnapshotID string
}

// Backend is what the domain needs of a storage. Its errors are *Error.
type Backend interface {
	// Find lists the volumes whose metadata carry the claim's UID, and no others.
	Find(ctx context.Context, uid string) ([]Volume, error)
	Get(ctx context.Context, id string) (Volume, error)
	Create(ctx context.Context, spec Spec) (Volume, error)
	Delete(ctx context.Context, id string) error
	// List lists the volumes of all claims: a cluster's, or everybody's where none is named.
	List(ctx context.Context, cluster string) ([]Volume, error)
	// SetMetadata replaces a volume's metadata.
	SetMetadata(ctx context.Context, id string, metadata map[string]string) error
	// Extend grows a volume; attached says that it is in use.
	Extend(ctx context.Context, id string, gib int, attached bool) error
	// Why says why the volume is in an error status, in the storage's own words where it has any.
	Why(ctx context.Context, v Volume) error
	reserver
	attacher
}

type reserver interface {
	// Reserve keeps everybody else from attaching the volume, Unreserve lets them again.
	Reserve(ctx context.Context, id string) error
	Unreserve(ctx context.Context, id string) error
	// Initialize exports the volume to the connector and tells how to reach it; repeating it is
	// harmless. Terminate takes the export back.
	Initialize(ctx context.Context, id string, c Connector) (Connection, error)
	Terminate(ctx context.Context, id string, c Connector) error
}

type attacher interface {
	// KnowsAttachments tells whether the storage can do what follows.
	KnowsAttachments(ctx context.Context) (bool, error)
	// Attachments lists those of a volume.
	Attachments(ctx context.Context, id string) ([]Attachment, error)
	// Attach makes one, which reserves the volume.
	Attach(ctx context.Context, id string) (Attachment, error)
	// Connect exports the volume for an attachment; repeating it is harmless.
	Connect(ctx context.Context, attachment string, c Connector) (Connection, error)
	// Complete tells the storage that the volume is in use from now on.
	Complete(ctx context.Context, attachment string) error
	// Detach takes the export and the attachment back.
	Detach(ctx context.Context, attachment string) error
}
