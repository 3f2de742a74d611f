package cinder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/failure"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// message is Cinder's explanation to a user of what failed after its answer.
type message struct {
	EventID   string `json:"event_id"`
	Text      string `json:"user_message"`
	Level     string `json:"message_level"`
	Created   string `json:"created_at"`
	RequestID string `json:"request_id"`
	Resource  string `json:"resource_uuid"`
}

// filteredMessages is the first microversion whose messages can be asked for one resource.
const filteredMessages = "3.5"

// The event IDs of messages are VOLUME_VOLUME_, the action and the detail (cinder/message/api.py and
// message_field.py).
const (
	// Actions that leave a new volume in "error": the scheduler's, and the backend's.
	scheduleFailed, createFailed = "VOLUME_VOLUME_001_", "VOLUME_VOLUME_008_"
	// extendFailed is of the backend, and leaves the volume in "error_extending"
	// (extend_volume_completion in cinder/volume/manager.py). Messages of the same action with
	// another detail do not.
	extendFailed = "VOLUME_VOLUME_007_010"
	// noBackend is the detail by which the scheduler says that no backend has room.
	noBackend = "_003"
)

// FailureOf returns an error with Cinder's message about a volume in an error status. The volume
// itself never holds it. Messages about other actions do not count: they are older, or say nothing
// of the status, such as one that Nova was not told of the new size.
func (c *Cinder) FailureOf(ctx context.Context, v volume.Volume) error {
	doing, events := "create", []string{scheduleFailed, createFailed}
	if v.Status == "error_extending" {
		doing, events = "extend", []string{extendFailed}
	}
	failed := &volume.Error{
		Kind:  volume.Unavailable,
		Doing: fmt.Sprintf("%s volume %s (%s)", doing, v.ID, v.Name),
		Said:  fmt.Sprintf("its status is %q", v.Status),
	}
	_, err := c.explain(ctx, failed, v.ID, func(m message) bool {
		return slices.ContainsFunc(events, func(event string) bool { return strings.HasPrefix(m.EventID, event) })
	})
	if err != nil {
		// The status is the failure to report. That its reason is unknown is a detail.
		failed.Err = fmt.Errorf("the reason is unknown: %w", err)
	}
	return failed
}

// notExtended returns why a volume has the size and the status again that it had before a request
// to extend it, and whether Cinder has said why. The message is the one of that request: any other
// may be older.
func (c *Cinder) notExtended(ctx context.Context, v volume.Volume, requestID string) (refusal error, isSaid bool) {
	failed := &volume.Error{
		Kind:  volume.Busy,
		Doing: "extend volume " + v.ID,
		Said:  fmt.Sprintf("its size is still %d GiB", v.SizeGiB),
	}
	isSaid, err := c.explain(ctx, failed, v.ID, func(m message) bool { return requestID != "" && m.RequestID == requestID })
	if err != nil {
		failed.Err = fmt.Errorf("the reason is unknown: %w", err)
	}
	return failed, isSaid
}

// explain completes a failure by the newest message about it, and reports whether there is one.
func (c *Cinder) explain(ctx context.Context, failed *volume.Error, id string, isAbout func(message) bool) (isSaid bool, err error) {
	all, err := c.messages(ctx, id)
	if err != nil {
		return false, err
	}
	about := slices.DeleteFunc(all, func(m message) bool { return !isAbout(m) })
	if len(about) == 0 {
		return false, errors.New("Cinder has no message about it")
	}
	m := slices.MaxFunc(about, func(a, b message) int { return cmp.Compare(a.Created, b.Created) })
	failed.Said, failed.RequestID = m.Text, m.RequestID
	if strings.HasSuffix(m.EventID, noBackend) {
		failed.Kind = volume.Full
	}
	return true, nil
}

// messages lists the errors that Cinder keeps for the user of a volume.
func (c *Cinder) messages(ctx context.Context, id string) ([]message, error) {
	api := c.at(filteredMessages)
	var body struct {
		Messages []message `json:"messages"`
	}
	query := url.Values{"resource_uuid": {id}}
	response, err := api.Get(ctx, api.ServiceURL("messages")+"?"+query.Encode(), &body, &gophercloud.RequestOpts{
		OkCodes: []int{http.StatusOK},
	})
	if err != nil {
		return nil, failure.Of(err, "list the messages about volume "+id, nil)
	}
	defer response.Body.Close()
	return slices.DeleteFunc(body.Messages, func(m message) bool { return m.Resource != id || m.Level != "ERROR" }), nil
}
