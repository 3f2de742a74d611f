package cinder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/snapshots"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/failure"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Snapshots returns the IDs of a volume's snapshots, as far as they are on the first page. Cinder may
// ignore the filter, so that the answer is filtered again.
func (c *Cinder) Snapshots(ctx context.Context, id string) ([]string, error) {
	var found []string
	err := snapshots.List(c.api, snapshots.ListOpts{VolumeID: id}).EachPage(ctx, func(_ context.Context, p pagination.Page) (bool, error) {
		all, err := snapshots.ExtractSnapshots(p)
		for _, one := range all {
			if one.VolumeID == id {
				found = append(found, one.ID)
			}
		}
		return false, err
	})
	return found, failure.Of(err, "list the snapshots of volume "+id, nil)
}

// whyNotDeleted returns an error that names the snapshots of a volume whose deletion Cinder refuses,
// or nil if it has none. Cinder's own message lists all reasons that there may be (delete in its
// volume/api.py).
func (b *Backend) whyNotDeleted(ctx context.Context, v volume.Volume, refusal error) error {
	refused, ok := errors.AsType[*volume.Error](refusal)
	if !ok || refused.Kind != volume.Busy {
		return nil
	}
	// If it cannot be found out, the refusal itself is the error.
	found, err := b.cinder.Snapshots(ctx, v.ID)
	if err != nil || len(found) == 0 {
		return nil
	}
	return &volume.Error{
		Kind:  volume.Busy,
		Doing: refused.Doing,
		Said: fmt.Sprintf("Cinder does not delete a volume that has snapshots, and this one has %s. An administrator must delete them, or set the reclaim"+
			" policy of the PersistentVolume to Retain to keep the volume", named(found)),
		RequestID: refused.RequestID,
		Err:       errors.New("Remedy: openstack volume snapshot delete " + strings.Join(found[:min(len(found), mostNamed)], " ")),
	}
}

// mostNamed is how many snapshots a message names.
const mostNamed = 3

func named(ids []string) string {
	text := strings.Join(ids[:min(len(ids), mostNamed)], ", ")
	if more := len(ids) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// requestDelete requests the deletion of a volume that is not exported.
func (b *Backend) requestDelete(ctx context.Context, v volume.Volume) error {
	err := b.cinder.Delete(ctx, v.ID)
	return cmp.Or(b.whyNotDeleted(ctx, v, err), err)
}
