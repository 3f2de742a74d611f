package cinder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/body"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/failure"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/transport"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Cinder is the API of one Cinder. Each method is one request, or one for each page of its answer.
type Cinder struct{ api *gophercloud.ServiceClient }

// Find lists the claim's volumes. Some Cinders ignore a filter that they do not know and return all
// volumes, so that the answer is filtered again.
func (c *Cinder) Find(ctx context.Context, uid string) ([]volume.Volume, error) {
	opts := volumes.ListOpts{Metadata: map[string]string{volume.KeyUID: uid}}
	found, _, err := c.list(ctx, "list the volumes of claim "+uid, opts, func(v volume.Volume) bool { return v.UID() == uid })
	return found, err
}

// List lists the volumes of all claims.
func (c *Cinder) List(ctx context.Context, cluster string) ([]volume.Volume, error) {
	var opts volumes.ListOpts
	if cluster != "" {
		opts.Metadata = map[string]string{volume.KeyCluster: cluster}
	}
	found, _, err := c.list(ctx, "list the volumes of cluster "+cluster, opts, func(v volume.Volume) bool {
		return v.UID() != "" && (cluster == "" || v.Metadata[volume.KeyCluster] == cluster)
	})
	return found, err
}

// ListFirst lists the volumes with the UID of a cluster that are on the first page, and reports
// whether there is no other page.
func (c *Cinder) ListFirst(ctx context.Context, clusterUID string, most int) (found []volume.Volume, areAll bool, err error) {
	opts := volumes.ListOpts{Limit: most, Metadata: map[string]string{volume.KeyClusterUID: clusterUID}}
	return c.list(ctx, "list the volumes of the cluster with the UID "+clusterUID, opts, func(v volume.Volume) bool {
		return v.Metadata[volume.KeyClusterUID] == clusterUID
	})
}

// mostReads is how many times a list is read from its first page.
const mostReads = 3

// list reads every page, or with a limit the first one, and reports whether that was the last. The
// values of the filter contain no quote, for which Cinder would return nothing. If the last volume of
// a page is deleted while the list is read, Cinder does not find where the next page begins, and
// answers 404 (_generate_paginate_query in cinder/db/sqlalchemy/api.py): the list is read again.
func (c *Cinder) list(
	ctx context.Context, doing string, opts volumes.ListOpts, wanted func(volume.Volume) bool,
) (found []volume.Volume, areAll bool, err error) {
	for range mostReads {
		var isFirst bool
		found, areAll, isFirst, err = c.read(ctx, doing, opts, wanted)
		if err == nil {
			return found, areAll, nil
		}
		if isFirst {
			// This is the first request of every run: it fails if endpoint, project or version are
			// wrong.
			special := failure.Misconfigured(http.StatusNotFound, http.StatusBadRequest)
			return nil, false, failure.Of(err, doing, special)
		}
		if answer, ok := failure.AnswerIn(err); !ok || answer.Actual != http.StatusNotFound {
			break
		}
	}
	return nil, false, failure.Of(err, doing, failure.Kinds{http.StatusNotFound: volume.Busy})
}

// read reads a list once. It reports whether it has asked for the first page only.
func (c *Cinder) read(
	ctx context.Context, doing string, opts volumes.ListOpts, wanted func(volume.Volume) bool,
) (found []volume.Volume, areAll, isFirst bool, err error) {
	one, asked := opts.Limit != 0, transport.Pages{}
	// There may be no page. Cinder's default is 1000 (osapi_max_limit), and much larger pages would
	// be more than what is read of an answer.
	areAll, opts.Limit = true, cmp.Or(opts.Limit, 1000)
	err = c.pages(opts).EachPage(ctx, func(_ context.Context, p pagination.Page) (bool, error) {
		all, err := volumes.ExtractVolumes(p.(page).VolumePage)
		for i := range all {
			if v := toVolume(&all[i]); wanted(v) {
				found, err = append(found, v), errors.Join(err, checkIDs(v))
			}
		}
		next, linkErr := p.NextPageURL()
		if areAll = next == ""; !areAll && !one {
			linkErr = errors.Join(linkErr, asked.Add(next, doing))
		}
		return !one, errors.Join(err, linkErr)
	})
	return found, areAll, len(asked) == 0, err
}

// page is a page of a list of volumes.
type page struct {
	volumes.VolumePage
	list string
}

func (c *Cinder) pages(opts volumes.ListOpts) pagination.Pager {
	return volumes.List(c.api, opts).WithPageCreator(func(r pagination.PageResult) pagination.Page {
		return page{
			VolumePage: volumes.VolumePage{LinkedPageBase: pagination.LinkedPageBase{PageResult: r}},
			list:       c.api.ServiceURL("volumes", "detail"),
		}
	})
}

// NextPageURL returns the URL of the list with the query of Cinder's link. The rest of the link is
// what Cinder takes for its own address: behind a proxy often one that this client cannot reach, or
// may not send its token to.
func (p page) NextPageURL() (string, error) {
	link, err := p.VolumePage.NextPageURL()
	if err != nil || link == "" {
		return "", err
	}
	next, err := url.Parse(link)
	if err != nil {
		return "", err
	}
	return p.list + "?" + next.RawQuery, nil
}

// Get returns one volume.
func (c *Cinder) Get(ctx context.Context, id string) (volume.Volume, error) {
	v, err := volumes.Get(ctx, c.api, id).Extract()
	if err != nil {
		return volume.Volume{}, failure.Of(err, "get volume "+id, nil)
	}
	found := toVolume(v)
	return found, checkIDs(found)
}

// Create requests a new volume. By 400 and 404 Cinder says that the class names something that does
// not exist, or that it does not make a volume of this size, which is the claim's.
func (c *Cinder) Create(ctx context.Context, spec volume.Spec) (volume.Volume, error) {
	v, err := volumes.Create(ctx, c.api, volumes.CreateOpts{
		Name:             spec.Name,
		Size:             spec.SizeGiB,
		VolumeType:       spec.Type,
		AvailabilityZone: spec.Zone,
		Metadata:         spec.Metadata,
		SourceVolID:      spec.Source.VolumeID,
		SnapshotID:       spec.Source.SnapshotID,
	}, body.Hints(spec.Hints)).Extract()
	if err != nil {
		special := failure.Misconfigured(http.StatusBadRequest, http.StatusNotFound)
		if failure.IsOfSize(err) {
			special = failure.Unsuitable
		}
		return volume.Volume{}, failure.Of(err, "create volume "+spec.Name, special)
	}
	found := toVolume(v)
	return found, checkIDs(found)
}

// Delete requests the deletion of a volume. Cinder deletes it later.
func (c *Cinder) Delete(ctx context.Context, id string) error {
	return failure.Of(volumes.Delete(ctx, c.api, id, nil).ExtractErr(), "delete volume "+id, nil)
}

// extendInUse is the first microversion that extends a volume in use.
const extendInUse = "3.42"

// Extend requests a larger size. Cinder extends the volume later. By 400 it refuses the size, unless
// it is the volume's status that does not allow it. The ID of the request is the one that Cinder's
// messages have: without keystone it is not that of X-Openstack-Request-Id in every release
// (_set_request_id_header in cinder/api/openstack/wsgi.py, NoAuthMiddleware in api/middleware/auth.py).
func (c *Cinder) Extend(ctx context.Context, id string, gib int, attached bool) (requestID string, err error) {
	api := c.api
	if attached {
		api = c.at(extendInUse)
	}
	result := volumes.ExtendSize(ctx, api, id, volumes.ExtendSizeOpts{NewSize: gib})
	special := failure.Kinds{http.StatusBadRequest: volume.Unsuitable}
	if failure.IsOfSize(result.Err) {
		special = failure.Unsuitable
	}
	return result.Header.Get("X-Compute-Request-Id"), failure.Of(result.Err, "extend volume "+id, special)
}

// readOnly is a key in the metadata that Cinder itself sets, from a volume's first attachment on.
const readOnly = "readonly"

// SetMetadata replaces a volume's metadata. It leaves out two keys that Cinder itself sets for an
// attachment and accepts from no client. What another client writes after the last look at the
// volume is lost. In exchange all marks of a claim change at once: after some of them an adopted
// volume could be taken for one that a run made, and be deleted.
func (c *Cinder) SetMetadata(ctx context.Context, id string, metadata map[string]string) error {
	mine := maps.Clone(metadata)
	delete(mine, readOnly)
	delete(mine, "attached_mode")
	response, err := c.api.Put(ctx, c.api.ServiceURL("volumes", id, "metadata"), map[string]any{"metadata": mine}, nil,
		&gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
	if err != nil {
		return failure.Of(err, "mark volume "+id, nil)
	}
	return failure.Of(response.Body.Close(), "mark volume "+id, nil)
}

// toVolume returns the volume in terms of the domain. Cinder keeps both IDs of a clone's source with
// the clone, also after the source was deleted (Volume in its db/models.py), so that no key in the
// metadata has to say it. Only a migration by way of another volume clears them
// (finish_volume_migration in its objects/volume.py): the clone looks like an empty volume then.
func toVolume(v *volumes.Volume) volume.Volume {
	return volume.Volume{
		ID:        v.ID,
		Name:      v.Name,
		State:     stateOf(v.Status),
		Status:    v.Status,
		SizeGiB:   v.Size,
		Type:      v.VolumeType,
		Zone:      v.AvailabilityZone,
		Metadata:  v.Metadata,
		Created:   v.CreatedAt,
		Origin:    cmp.Or(v.SourceVolID, v.SnapshotID),
		Users:     users(v.Attachments),
		Exports:   exports(v.Attachments),
		Encrypted: v.Encrypted,
		Shareable: v.Multiattach,
	}
}

// checkIDs returns an error if an answer about a volume has an ID that is none. Events name commands
// for administrators with it, and a storage in the hands of an attacker once wrote the rest of the
// command (TestAnIDThatIsNoneIsAnError).
func checkIDs(v volume.Volume) error {
	err := checkID(v.ID)
	for _, id := range v.Exports {
		if id != "" {
			err = errors.Join(err, checkID(id))
		}
	}
	return err
}

func checkID(id string) error {
	if volume.IsID(id) {
		return nil
	}
	return &volume.Error{Kind: volume.Unavailable, Doing: "read Cinder's answer", Said: fmt.Sprintf("%q is not an ID", id)}
}

// exports returns the IDs of a volume's completed attachments: it shows no others (_get_attachments
// in Cinder's api/v3/views/volumes.py).
func exports(all []volumes.Attachment) []string {
	var found []string
	for _, a := range all {
		found = append(found, a.AttachmentID)
	}
	return found
}

// users returns who has a volume attached.
func users(all []volumes.Attachment) []string {
	var found []string
	for _, a := range all {
		switch {
		case a.ServerID != "":
			found = append(found, "server "+a.ServerID)
		case a.HostName != "":
			found = append(found, "host "+a.HostName)
		}
	}
	return found
}
