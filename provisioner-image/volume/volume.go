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
	Name     string
	SizeGiB  int
	Type     string
	Zone     string
	Metadata map[string]string
	// Connector is what the volume is exported to, and what a spare one must be taken back from.
	Connector Connector
}

// Connector is how the nodes present themselves to the storage. The JSON names are those of the
// OpenStack connector, and they are recorded on the PV: what opened a connection must close it.
type Connector struct {
	Initiator string `json:"initiator,omitempty"`
	Host      string `json:"host,omitempty"`
	IP        string `json:"ip,omitempty"`
	Platform  string `json:"platform,omitempty"`
	OSType    string `json:"os_type,omitempty"`
	Multipath bool   `json:"multipath"`
}

// Backend is what the domain needs of a storage. Its errors are *Error.
type Backend interface {
	// Find lists the volumes whose metadata carry the claim's UID, and no others.
	Find(ctx context.Context, uid string) ([]Volume, error)
	Get(ctx context.Context, id string) (Volume, error)
	Create(ctx context.Context, spec Spec) (Volume, error)
	Delete(ctx context.Context, id string) error
	// Reserve keeps everybody else from attaching the volume, Unreserve lets them again.
	Reserve(ctx context.Context, id string) error
	Unreserve(ctx context.Context, id string) error
	// Initialize exports the volume to the connector and tells how to reach it; repeating it is
	// harmless. Terminate takes the export back.
	Initialize(ctx context.Context, id string, c Connector) (Connection, error)
	Terminate(ctx context.Context, id string, c Connector) error
	// Why says why the volume is in an error status, in the storage's own words where it has any.
	Why(ctx context.Context, v Volume) error
}
