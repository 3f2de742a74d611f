package cinder

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/body"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Reserve changes the status of an available volume to attaching, which is Cinder's only exclusive lock without
// attachments.
func (c *Cinder) Reserve(ctx context.Context, id string) error {
	return failure(volumes.Reserve(ctx, c.api, id).ExtractErr(), "reserve volume "+id, nil)
}

// Unreserve makes a reserved volume available again. Any other volume stays as it is.
func (c *Cinder) Unreserve(ctx context.Context, id string) error {
	return failure(volumes.Unreserve(ctx, c.api, id).ExtractErr(), "unreserve volume "+id, nil)
}

// Initialize exports the volume. Cinder answers 400 when the connector lacks what the backend needs.
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
		return volume.Connection{}, failure(err, doing, misconfigured(http.StatusBadRequest))
	}
	return volume.NewConnection(answer.Info.Kind, answer.Info.Data), nil
}

// Terminate removes the export to the connector.
func (c *Cinder) Terminate(ctx context.Context, id string, k volume.Client) error {
	err := volumes.TerminateConnection(ctx, c.api, id, body.Terminate(k)).ExtractErr()
	return failure(err, "terminate the connection of volume "+id, nil)
}
