package cinder

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/attachments"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/body"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/failure"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// completeAttachments is the first microversion in which an attachment can be completed.
const completeAttachments = "3.44"

// listAttachments is the first microversion with attachments. Cinder filters by the volume in it for
// everyone. From 3.31 on it refuses every filter that its resource_filters.json does not list with
// 400, except to administrators, and an installation by pip does not have that file in its place
// (process_general_filtering and reject_invalid_filters in cinder/api/common.py).
const listAttachments = "3.27"

// at returns the client for a microversion.
func (c *Cinder) at(microversion string) *gophercloud.ServiceClient {
	api := *c.api
	api.Microversion = microversion
	return &api
}

// KnowsAttachments reports whether Cinder can complete attachments. An older Cinder refuses the
// microversion with 406, and one without microversions does not know the path.
func (c *Cinder) KnowsAttachments(ctx context.Context) (bool, error) {
	api := c.at(completeAttachments)
	query := url.Values{"limit": {"1"}}
	response, err := api.Get(ctx, api.ServiceURL("attachments")+"?"+query.Encode(), nil, &gophercloud.RequestOpts{
		OkCodes: []int{http.StatusOK, http.StatusNotFound, http.StatusNotAcceptable},
	})
	if err != nil {
		return false, failure.Of(err, "find out whether Cinder knows attachments", nil)
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK, nil
}

// attachment is an attachment in Cinder's JSON.
type attachment struct {
	ID       string          `json:"id"`
	Status   string          `json:"status"`
	Server   string          `json:"instance"`
	VolumeID string          `json:"volume_id"`
	Info     json.RawMessage `json:"connection_info"`
}

// toAttachment keeps the details of the connection as Cinder sent them. The kind of connection is
// one of the details.
func (a attachment) toAttachment() (Attachment, error) {
	made := Attachment{ID: a.ID, Status: a.Status, Server: a.Server}
	if err := checkID(a.ID); err != nil || len(a.Info) == 0 {
		return made, err
	}
	var info struct {
		Kind string `json:"driver_volume_type"`
	}
	if err := json.Unmarshal(a.Info, &info); err != nil {
		return made, failure.Of(err, "read attachment "+a.ID, nil)
	}
	if info.Kind != "" {
		made.Connection = volume.NewConnection(info.Kind, a.Info)
	}
	return made, nil
}

// Attachments lists the attachments of a volume. Cinder may ignore the filter, so that the answer
// is filtered again. It links no list of attachments to another page (ViewBuilder.list in
// cinder/api/v3/views/attachments.py), so that no link in the answer is followed.
func (c *Cinder) Attachments(ctx context.Context, id string) ([]Attachment, error) {
	var all struct {
		Attachments []attachment `json:"attachments"`
	}
	api, query := c.at(listAttachments), url.Values{"volume_id": {id}}
	response, err := api.Get(ctx, api.ServiceURL("attachments", "detail")+"?"+query.Encode(), &all, nil)
	if err != nil {
		return nil, failure.Of(err, "list the attachments of volume "+id, failure.Misconfigured(http.StatusNotFound))
	}
	defer response.Body.Close()
	var found []Attachment
	for _, a := range all.Attachments {
		if a.VolumeID != id {
			continue
		}
		made, err := a.toAttachment()
		if err != nil {
			return nil, err
		}
		found = append(found, made)
	}
	return found, nil
}

// VolumeOf returns the ID of the volume that an attachment belongs to.
func (c *Cinder) VolumeOf(ctx context.Context, id string) (string, error) {
	var found attachment
	err := attachments.Get(ctx, c.at(completeAttachments), id).ExtractInto(&found)
	return found.VolumeID, failure.Of(err, "get attachment "+id, nil)
}

// errNeedsServer is the cause where Cinder makes attachments only for servers: from Queens to
// Ussuri, and 17.0.
var errNeedsServer = errors.New("this Cinder creates attachments only for servers: set attach-api to auto or reserve")

// Attach makes an attachment without a server, so that Nova's rules for deleting attachments do not
// apply to it.
func (c *Cinder) Attach(ctx context.Context, id string) (Attachment, error) {
	var made attachment
	err := attachments.Create(ctx, c.at(completeAttachments), body.Attach(id)).ExtractInto(&made)
	if err != nil {
		return Attachment{}, attachFailure(err, "attach volume "+id)
	}
	return made.toAttachment()
}

// attachFailure finds out by Cinder's message whether it asks for a server, which the request does
// not name. No microversion says it: that of 17.0 is in releases that ask for none.
func attachFailure(err error, doing string) error {
	answer, ok := failure.AnswerIn(err)
	if !ok || answer.Actual != http.StatusBadRequest || !strings.Contains(failure.MessageIn(answer), "instance_uuid") {
		return failure.Of(err, doing, nil)
	}
	return &volume.Error{
		Kind: volume.Misconfigured, Doing: doing, Said: failure.MessageIn(answer), RequestID: failure.RequestID(answer), Err: errNeedsServer,
	}
}

// Connect exports the volume for an attachment.
func (c *Cinder) Connect(ctx context.Context, id string, k volume.Client) (volume.Connection, error) {
	doing := "connect attachment " + id
	var answer attachment
	err := attachments.Update(ctx, c.at(completeAttachments), id, body.Connect(k)).ExtractInto(&answer)
	if err != nil {
		return volume.Connection{}, failure.Of(err, doing, failure.Misconfigured(http.StatusBadRequest))
	}
	made, err := answer.toAttachment()
	if err == nil && made.Connection.IsEmpty() {
		err = &volume.Error{Kind: volume.Unavailable, Doing: doing, Said: "Cinder does not say how to reach the volume"}
	}
	return made.Connection, err
}

// Complete marks the attachment as in use.
func (c *Cinder) Complete(ctx context.Context, id string) error {
	err := attachments.Complete(ctx, c.at(completeAttachments), id).ExtractErr()
	return failure.Of(err, "complete attachment "+id, nil)
}

// Detach deletes the attachment, and with it the export.
func (c *Cinder) Detach(ctx context.Context, id string) error {
	err := attachments.Delete(ctx, c.at(completeAttachments), id).ExtractErr()
	return failure.Of(err, "delete attachment "+id, nil)
}
