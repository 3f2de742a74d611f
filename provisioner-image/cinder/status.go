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

// isReserved reports whether the volume is reserved, as a run of ours can leave it.
func isReserved(v volume.Volume) bool { return v.Status == attaching || v.Status == reserved }

// mayBeHeld reports whether something may keep the volume from being deleted, a failed attachment included.
func mayBeHeld(v volume.Volume) bool {
	return isReserved(v) || v.Status == inUse || v.Status == "error_attaching" || v.Status == "error_detaching"
}

// isMoving reports whether Cinder is at work on the volume and will end in another status by itself.
func isMoving(v volume.Volume) bool {
	switch v.Status {
	case "creating", "downloading", "uploading", "extending", "retyping", "managing", "detaching",
		"backing-up", "restoring-backup", "maintenance":
		return true
	default:
		return false
	}
}
