package volume

import "strings"

// Statuses that decide what comes next.
const (
	available = "available"
	attaching = "attaching"
	reserved  = "reserved"
	inUse     = "in-use"
	deleting  = "deleting"
)

// held tells whether the volume is reserved, as a run of ours can leave it.
func (v Volume) held() bool { return v.Status == attaching || v.Status == reserved }

// busy tells whether something may hold the volume, a hold that failed included.
func (v Volume) busy() bool {
	return v.held() || v.Status == inUse || v.Status == "error_attaching" || v.Status == "error_detaching"
}

// failed tells whether the storage gave the volume up.
func (v Volume) failed() bool { return strings.HasPrefix(v.Status, "error") }

// moving tells whether the storage is at work on the volume and will end in another status by itself.
func (v Volume) moving() bool {
	switch v.Status {
	case "creating", "downloading", "uploading", "extending", "retyping", "managing", "detaching",
		"backing-up", "restoring-backup", "maintenance":
		return true
	default:
		return false
	}
}
