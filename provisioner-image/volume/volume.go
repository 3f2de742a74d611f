package volume

import (
	"regexp"
	"time"
)

// KeyUID is the key in a volume's metadata that holds the UID of its claim. By it a run finds what
// an earlier run made, since names are not unique in a storage.
const KeyUID = "flex-provisioner.io/claim-uid"

// KeyCluster is the key of the Kubernetes cluster's name.
const KeyCluster = "flex-provisioner.io/cluster"

// KeyClusterUID is the key of the UID of the Kubernetes cluster. Volumes without it were made by an
// older image.
const KeyClusterUID = "flex-provisioner.io/cluster-uid"

// Volume is a volume as the storage describes it.
type Volume struct {
	ID   string
	Name string
	// State is what the status means. Status is the storage's name for it.
	State    State
	Status   string
	SizeGiB  int
	Type     string
	Zone     string
	Metadata map[string]string
	Created  time.Time
	// Origin is the ID of the volume or snapshot that the content was cloned from, empty for a volume
	// that was made empty.
	Origin string
	// Users are who uses the volume: "server ID", or "host NAME" where there is no server.
	Users []string
	// Exports are the IDs, as in an Access, of the volume's exports that it shows itself. It may
	// have others.
	Exports []string
	// Encrypted is true if only a client with the volume's key can read it.
	Encrypted bool
	// Shareable is true if the storage lets many clients write to the volume.
	Shareable bool
}

// idForm matches the IDs of a storage. They become parts of URLs, in which "../volumes/ID" would be
// another resource, and of commands that events name for administrators, in which "-x" would be an option.
var idForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z-]{0,62}$`)

// IsID reports whether a text may be the ID of a volume or of another resource of a storage.
func IsID(text string) bool { return idForm.MatchString(text) }

// UID returns the UID of the claim that the volume was made for.
func (v Volume) UID() string { return v.Metadata[KeyUID] }

// State is what a volume's status means to its claim.
type State int

// The states. The zero value is the safe one.
const (
	// Occupied: the volume is in use, or the storage is working on it.
	Occupied State = iota
	// Free: the volume can be used, and is not in use.
	Free
	// Failed: the storage has given the volume up.
	Failed
	// Deleting: the storage is deleting the volume.
	Deleting
)

// Spec is the volume that a claim wants.
type Spec struct {
	UID     string
	Cluster string
	// ClusterUID marks the volumes of this cluster. Without it no cluster is looked at.
	ClusterUID string
	Name       string
	SizeGiB    int
	Type       string
	// Zone is where the storage is asked to make the volume. Without it, it is made where its source
	// is, or where the storage chooses.
	Zone string
	// Zones are where the volume may be; anywhere, if none is named. AnyZone is true if a volume
	// elsewhere is used nevertheless.
	Zones   []string
	AnyZone bool

	Metadata map[string]string
	// Hints tell the storage where to put the volume.
	Hints map[string]any
	// Source is what the content is cloned from. It is zero for an empty volume.
	Source Source
	// Adopt is the ID of an existing volume that becomes the claim's.
	Adopt string
	// CopyOf is the UID of a claim whose PV stands for another volume than Adopt, although Adopt
	// may carry the UID.
	CopyOf string
	// Former is what Adopt was until now, if another claim of this provisioner had it.
	Former Former
	// Asked is when the run began to work for the claim. A volume that it makes carries it. Without
	// it no mark of time is written.
	Asked time.Time
	// Access is how the volume is exported, and how the export of a second one is removed.
	Access Access
}

// Former is the volume of a claim that is deleted and whose PV was retained. Without a UID it is none.
type Former struct {
	// UID is the deleted claim's.
	UID string
	// Access is how its PV records the export, which ends with the adoption.
	Access Access
}

// HasContent reports whether the volume has content from the beginning.
func (s Spec) HasContent() bool { return s.Source != Source{} || s.Adopt != "" }

// Source is what a new volume is a clone of: another claim's volume, or a snapshot.
type Source struct {
	VolumeID string
	// UID is the claim that the other volume must belong to.
	UID string
	// Place is where the other volume was made, as far as it is noted.
	Place      Place
	SnapshotID string
}
