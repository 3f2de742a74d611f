package cinder

import (
	"strings"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Statuses of a volume that decide what comes next.
const (
	available = "available"
	attaching = "attaching"
	reserved  = "reserved"
	inUse     = "in-use"
	extending = "extending"
	deleting  = "deleting"
)

// stateOf returns what a status means to the domain.
func stateOf(status string) volume.State {
	switch {
	case status == available:
		return volume.Free
	case status == deleting:
		return volume.Deleting
	case strings.HasPrefix(status, "error"):
		return volume.Failed
	default:
		return volume.Occupied
	}
}

// isReserved reports whether the volume is only reserved, which a run that was killed or an older
// image may have done.
func isReserved(v volume.Volume) bool { return v.Status == attaching || v.Status == reserved }

// mayBeExported reports whether the volume may have an export or a reservation to release. A
// failure leaves the attachment as it was: Cinder deletes no volume that is error_extending and
// attached.
func mayBeExported(v volume.Volume) bool {
	return isReserved(v) || v.Status == inUse || v.State == volume.Failed
}

// isBusy reports whether Cinder is working on the volume, so that its status will change by itself.
func isBusy(v volume.Volume) bool {
	switch v.Status {
	case "creating", "downloading", "uploading", extending, "retyping", "managing", "detaching",
		"backing-up", "restoring-backup", "maintenance":
		return true
	default:
		return false
	}
}
