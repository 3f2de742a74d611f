package body

import "github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"

// gophercloud's own connectors lack fields, and have others of the wrong type.
type (
	// Initialize exports a volume to a client.
	Initialize volume.Client
	// Terminate removes the export to a client.
	Terminate volume.Client
	// Connect exports a volume to a client, for an attachment.
	Connect volume.Client
)

// ToVolumeInitializeConnectionMap returns the body of the request.
func (k Initialize) ToVolumeInitializeConnectionMap() (map[string]any, error) {
	return map[string]any{"os-initialize_connection": map[string]any{"connector": volume.Client(k)}}, nil
}

// ToVolumeTerminateConnectionMap returns the body of the request.
func (k Terminate) ToVolumeTerminateConnectionMap() (map[string]any, error) {
	return map[string]any{"os-terminate_connection": map[string]any{"connector": volume.Client(k)}}, nil
}

// ToAttachmentUpdateMap returns the body of the request.
func (k Connect) ToAttachmentUpdateMap() (map[string]any, error) {
	return map[string]any{"attachment": map[string]any{"connector": volume.Client(k)}}, nil
}

// Attach makes an attachment of the volume with this ID. gophercloud always names a server, and
// Cinder refuses an empty one.
type Attach string

// ToAttachmentCreateMap returns the body of the request.
func (id Attach) ToAttachmentCreateMap() (map[string]any, error) {
	return map[string]any{"attachment": map[string]any{"volume_uuid": string(id)}}, nil
}

// AttachHost attaches a volume to a host, which may have no name: gophercloud then leaves out the
// field, which Cinder requires.
type AttachHost struct {
	Host     string
	ReadOnly bool
}

// MountPoint is what Cinder keeps of an attachment to this image's host, and shows as its device.
const MountPoint = "flex-provisioner"

// ToVolumeAttachMap returns the body of the request. The nodes mount the volume where pods need it,
// so that the mount point, which Cinder requires, only says who attached it.
func (h AttachHost) ToVolumeAttachMap() (map[string]any, error) {
	mode := "rw"
	if h.ReadOnly {
		mode = "ro"
	}
	return map[string]any{"os-attach": map[string]any{
		"host_name": h.Host, "mountpoint": MountPoint, "mode": mode,
	}}, nil
}

// Hints are sent as the class has them: gophercloud's own type refuses some that schedulers accept.
type Hints map[string]any

// ToSchedulerHintsMap returns this part of the request's body.
func (h Hints) ToSchedulerHintsMap() (map[string]any, error) {
	if len(h) == 0 {
		return nil, nil
	}
	return map[string]any{"OS-SCH-HNT:scheduler_hints": map[string]any(h)}, nil
}
