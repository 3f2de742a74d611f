package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/attachments"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
)

// microversion is the first one in which an attachment can be completed.
const microversion = "3.44"

// made is a volume with its attachment.
type made struct{ id, attachment string }

// toVolume and toNode are bodies that gophercloud's own options cannot have: they always name a
// server.
type (
	toVolume string
	toNode   struct{}
)

// ToAttachmentCreateMap returns the body of the request.
func (id toVolume) ToAttachmentCreateMap() (map[string]any, error) {
	return map[string]any{"attachment": map[string]any{"volume_uuid": string(id)}}, nil
}

// ToAttachmentUpdateMap returns the body of the request.
func (toNode) ToAttachmentUpdateMap() (map[string]any, error) {
	return map[string]any{"attachment": map[string]any{"connector": map[string]any{
		"initiator": "iqn.2026-11.io.flex-provisioner:bench", "host": "flex-bench", "platform": "x86_64", "os_type": "linux", "multipath": false,
	}}}, nil
}

// makeVolume makes a volume, waits for it and exports it.
func makeVolume(ctx context.Context, api *gophercloud.ServiceClient, kind string, i int) (made, error) {
	v, err := volumes.Create(ctx, api, volumes.CreateOpts{
		Name: fmt.Sprintf("bench-%d", i), Size: 1, VolumeType: kind, Metadata: map[string]string{"bench": fmt.Sprint(i)},
	}, nil).Extract()
	if err != nil {
		return made{}, err
	}
	m := made{id: v.ID}
	if err := await(ctx, api, m.id, "available"); err != nil {
		return m, err
	}
	if _, err := attachments.List(api, attachments.ListOpts{VolumeID: m.id}).AllPages(ctx); err != nil {
		return m, err
	}
	a, err := attachments.Create(ctx, api, toVolume(m.id)).Extract()
	if err != nil {
		return m, err
	}
	m.attachment = a.ID
	if err := attachments.Update(ctx, api, m.attachment, toNode{}).Err; err != nil {
		return m, err
	}
	return m, attachments.Complete(ctx, api, m.attachment).ExtractErr()
}

// delete removes what makeVolume has made, as far as it came, and waits until it no longer exists.
func (m made) delete(ctx context.Context, api *gophercloud.ServiceClient) error {
	if m.id == "" {
		return nil
	}
	if m.attachment != "" {
		if err := attachments.Delete(ctx, api, m.attachment).ExtractErr(); err != nil {
			return err
		}
		if err := await(ctx, api, m.id, "available"); err != nil {
			return err
		}
	}
	if err := volumes.Delete(ctx, api, m.id, nil).ExtractErr(); err != nil {
		return err
	}
	return await(ctx, api, m.id, "")
}

// await gets a volume until it has a status, or with no status until it does not exist. It pauses
// as the provisioner does.
func await(ctx context.Context, api *gophercloud.ServiceClient, id, status string) error {
	for pause := 100 * time.Millisecond; ; pause = min(pause*5/4, 5*time.Second) {
		time.Sleep(pause)
		v, err := volumes.Get(ctx, api, id).Extract()
		switch {
		case gophercloud.ResponseCodeIs(err, http.StatusNotFound) && status == "":
			return nil
		case err != nil:
			return err
		case v.Status == status:
			return nil
		case v.Status == "error", v.Status == "error_deleting":
			return errors.New("volume " + id + " is in status " + v.Status)
		}
	}
}
