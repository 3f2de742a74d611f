package cinder

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Reserve turns an available volume into an attaching one, which is the only exclusivity that Cinder
// knows without attachments.
func (c *Cinder) Reserve(ctx context.Context, id string) error {
	return failure(volumes.Reserve(ctx, c.api, id).ExtractErr(), "reserve volume "+id, nil)
}

// Unreserve makes it available again; on any other volume it does nothing.
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
	err := volumes.InitializeConnection(ctx, c.api, id, initialize(k)).ExtractInto(&answer)
	if err != nil {
		return volume.Connection{}, failure(err, doing, misconfigured(http.StatusBadRequest))
	}
	return volume.NewConnection(answer.Info.Kind, answer.Info.Data), nil
}

// Terminate takes the export back, from the connector that it was made for.
func (c *Cinder) Terminate(ctx context.Context, id string, k volume.Client) error {
	err := volumes.TerminateConnection(ctx, c.api, id, terminate(k)).ExtractErr()
	return failure(err, "terminate the connection of volume "+id, nil)
}

// Own builders: gophercloud's lack fields of the connector and give others the wrong type.
type (
	initialize volume.Client
	terminate  volume.Client
)

// ToVolumeInitializeConnectionMap is gophercloud's way to ask for the request's body.
func (k initialize) ToVolumeInitializeConnectionMap() (map[string]any, error) {
	return map[string]any{"os-initialize_connection": map[string]any{"connector": k}}, nil
}

// ToVolumeTerminateConnectionMap is gophercloud's way to ask for the request's body.
func (k terminate) ToVolumeTerminateConnectionMap() (map[string]any, error) {
	return map[string]any{"os-terminate_connection": map[string]any{"connector": k}}, nil
}
