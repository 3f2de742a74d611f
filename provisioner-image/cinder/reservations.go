package cinder

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/body"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/failure"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Reserve changes the status of an available volume to attaching, which is Cinder's only exclusive
// lock without attachments.
func (c *Cinder) Reserve(ctx context.Context, id string) error {
	return failure.Of(volumes.Reserve(ctx, c.api, id).ExtractErr(), "reserve volume "+id, nil)
}

// AttachHost changes the status of a reserved volume to in-use. Cinder attaches a volume that is
// marked as read-only only in that mode. Attaching it again to the same host changes nothing.
func (c *Cinder) AttachHost(ctx context.Context, v volume.Volume, host string) error {
	opts := body.AttachHost{Host: host, ReadOnly: v.Metadata[readOnly] == "True"}
	return failure.Of(volumes.Attach(ctx, c.api, v.ID, opts).ExtractErr(), "attach volume "+v.ID, nil)
}

// DetachHost ends what AttachHost began. Without the attachment's ID it ends the only one, and a
// volume that has none becomes available.
func (c *Cinder) DetachHost(ctx context.Context, id, attachment string) error {
	err := volumes.Detach(ctx, c.api, id, volumes.DetachOpts{AttachmentID: attachment}).ExtractErr()
	return failure.Of(err, "detach volume "+id, nil)
}

// shownAttachments returns the completed attachments of a volume.
func (c *Cinder) shownAttachments(ctx context.Context, id string) ([]volumes.Attachment, error) {
	v, err := volumes.Get(ctx, c.api, id).Extract()
	if err != nil {
		return nil, failure.Of(err, "get the attachments of volume "+id, nil)
	}
	return v.Attachments, nil
}

// Unreserve makes a volume available again that Reserve has reserved. Any other volume stays as it
// is.
func (c *Cinder) Unreserve(ctx context.Context, id string) error {
	return failure.Of(volumes.Unreserve(ctx, c.api, id).ExtractErr(), "unreserve volume "+id, nil)
}

// Initialize exports the volume. Cinder answers 400 when the connector lacks what the backend
// needs.
func (c *Cinder) Initialize(ctx context.Context, id string, k volume.Client) (volume.Connection, error) {
	doing := "initialize the connection of volume " + id
	var answer struct {
		Info struct {
			Kind string          `json:"driver_volume_type"`
			Data json.RawMessage `json:"data"`
		} `json:"connection_info"`
	}
	err := volumes.InitializeConnection(ctx, c.api, id, body.Initialize(k)).ExtractInto(&answer)
	if err != nil {
		return volume.Connection{}, failure.Of(err, doing, failure.Misconfigured(http.StatusBadRequest))
	}
	return volume.NewConnection(answer.Info.Kind, answer.Info.Data), nil
}

// Terminate removes the export to the connector.
func (c *Cinder) Terminate(ctx context.Context, id string, k volume.Client) error {
	err := volumes.TerminateConnection(ctx, c.api, id, body.Terminate(k)).ExtractErr()
	return failure.Of(err, "terminate the connection of volume "+id, nil)
}
