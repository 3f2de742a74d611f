package cinder

import "github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"

// The ways to export a volume. Cinder keeps them apart: what was reserved by one of them is
// released by the same one.
const (
	// Auto is Attachments where Cinder makes them without a server, and Reserve where it does not.
	Auto volume.Method = "auto"
	// Attachments are records of Cinder's own. Cinder restores their exports after a restart, and
	// takes an export back when its attachment is deleted.
	Attachments volume.Method = "attachments"
	// Reserve is the older way: reserve, initialize_connection, attach to a host. Cinder restores
	// the export of a volume in use after a restart, and not that of one which an older image has
	// only reserved.
	Reserve volume.Method = "reserve"
)

// Methods lists the ways to export a volume, the default first.
func Methods() []volume.Method { return []volume.Method{Auto, Attachments, Reserve} }

// Attachment is one use of a volume.
type Attachment struct {
	ID     string
	Status string
	// Server is the machine that Nova attached the volume to. Attachments of this image have none.
	Server string
	// Connection is empty until the volume was exported for it.
	Connection volume.Connection
}

// Statuses of an attachment that decide what comes next.
const (
	attached       = "attached"
	errorAttaching = "error_attaching"
)
