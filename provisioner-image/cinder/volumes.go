package cinder

import (
	"context"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Cinder is a storage backend of the domain.
type Cinder struct{ api *gophercloud.ServiceClient }

var _ volume.Backend = (*Cinder)(nil)

// Find lists the claim's volumes. Some Cinders ignore a filter that they do not know and return
// everything, so the answer is checked.
func (c *Cinder) Find(ctx context.Context, uid string) ([]volume.Volume, error) {
	doing := "list the volumes of claim " + uid
	pages, err := volumes.List(c.api, volumes.ListOpts{Metadata: map[string]string{volume.KeyUID: uid}}).AllPages(ctx)
	if err != nil {
		// It is the first request of every run: a wrong endpoint, project or version shows here.
		return nil, failure(err, doing, misconfigured(http.StatusNotFound, http.StatusBadRequest))
	}
	all, err := volumes.ExtractVolumes(pages)
	if err != nil {
		return nil, failure(err, doing, nil)
	}
	var found []volume.Volume
	for i := range all {
		if v := ours(&all[i]); v.UID() == uid {
			found = append(found, v)
		}
	}
	return found, nil
}

// Get asks for one volume.
func (c *Cinder) Get(ctx context.Context, id string) (volume.Volume, error) {
	v, err := volumes.Get(ctx, c.api, id).Extract()
	if err != nil {
		return volume.Volume{}, failure(err, "look at volume "+id, nil)
	}
	return ours(v), nil
}

// Create asks for a new volume. 400 and 404 mean that the class names what Cinder does not have.
func (c *Cinder) Create(ctx context.Context, spec volume.Spec) (volume.Volume, error) {
	v, err := volumes.Create(ctx, c.api, volumes.CreateOpts{
		Name:             spec.Name,
		Size:             spec.SizeGiB,
		VolumeType:       spec.Type,
		AvailabilityZone: spec.Zone,
		Metadata:         spec.Metadata,
	}, nil).Extract()
	if err != nil {
		special := misconfigured(http.StatusBadRequest, http.StatusNotFound)
		return volume.Volume{}, failure(err, "create volume "+spec.Name, special)
	}
	return ours(v), nil
}

// Delete asks Cinder to delete a volume, which it does later.
func (c *Cinder) Delete(ctx context.Context, id string) error {
	return failure(volumes.Delete(ctx, c.api, id, nil).ExtractErr(), "delete volume "+id, nil)
}

func ours(v *volumes.Volume) volume.Volume {
	return volume.Volume{
		ID:       v.ID,
		Name:     v.Name,
		Status:   v.Status,
		SizeGiB:  v.Size,
		Type:     v.VolumeType,
		Zone:     v.AvailabilityZone,
		Metadata: v.Metadata,
		Created:  v.CreatedAt,
	}
}
