package cinder

import (
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
				found, err = append(found, one.ID), errors.Join(err, checkID(one.ID))
			}
		}
		return false, err
	})
	return found, failure.Of(err, "list the snapshots of volume "+id, nil)
}

// requestDelete requests the deletion of a volume that is not exported. If Cinder refuses it because
// of snapshots, the error names them: Cinder's own message lists all reasons that there may be
// (delete in its volume/api.py).
func (b *Backend) requestDelete(ctx context.Context, v volume.Volume) error {
	err := b.cinder.Delete(ctx, v.ID)
	refused, ok := errors.AsType[*volume.Error](err)
	if !ok || refused.Kind != volume.Busy {
		return err
	}
	// If they cannot be listed, the refusal itself is the error.
	if found, listErr := b.cinder.Snapshots(ctx, v.ID); listErr == nil && len(found) > 0 {
		return hasSnapshots(refused, found)
	}
	return err
}

// mostNamed is how many snapshots a message names.
const mostNamed = 3

func hasSnapshots(refused *volume.Error, ids []string) error {
	named := ids[:min(len(ids), mostNamed)]
	text := strings.Join(named, ", ")
	if more := len(ids) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return &volume.Error{
		Kind:  volume.Busy,
		Doing: refused.Doing,
		Said: fmt.Sprintf("Cinder does not delete a volume that has snapshots, and this one has %s. An administrator must delete them, or set the reclaim"+
			" policy of the PersistentVolume to Retain to keep the volume", text),
		RequestID: refused.RequestID,
		Err:       errors.New("Remedy: openstack volume snapshot delete " + strings.Join(named, " ")),
	}
}
