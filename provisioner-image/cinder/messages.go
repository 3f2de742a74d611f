package cinder

import (
	"cmp"
	"context"
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

const (
	// filteredMessages is the first microversion whose messages can be asked for one resource.
	filteredMessages = "3.5"
	// schedulerFailed is the beginning of the event IDs of volumes that the scheduler could not
	// place.
	schedulerFailed = "VOLUME_VOLUME_001_"
)

// FailureOf returns an error with Cinder's message about a volume in an error status. The volume
// itself never holds it.
func (c *Cinder) FailureOf(ctx context.Context, v volume.Volume) error {
	failed := &volume.Error{
		Kind:  volume.Unavailable,
		Doing: fmt.Sprintf("create volume %s (%s)", v.ID, v.Name),
		Said:  fmt.Sprintf("its status is %q", v.Status),
	}
	m, err := c.newestMessage(ctx, v.ID)
	if err != nil {
		// The status is the failure to report. That its reason is unknown is a detail.
		failed.Err = fmt.Errorf("the reason is unknown: %w", err)
		return failed
	}
	failed.Said, failed.RequestID = m.Text, m.RequestID
	if strings.HasPrefix(m.EventID, schedulerFailed) {
		failed.Kind = volume.Full
	}
	return failed
}

func (c *Cinder) newestMessage(ctx context.Context, id string) (message, error) {
	api := c.at(filteredMessages)
	var body struct {
		Messages []message `json:"messages"`
	}
	query := url.Values{"resource_uuid": {id}}
	response, err := api.Get(ctx, api.ServiceURL("messages")+"?"+query.Encode(), &body, &gophercloud.RequestOpts{
		OkCodes: []int{http.StatusOK},
	})
	if err != nil {
		return message{}, failure.Of(err, "list the messages about volume "+id, nil)
	}
	defer response.Body.Close()
	about := slices.DeleteFunc(body.Messages, func(m message) bool { return m.Resource != id || m.Level != "ERROR" })
	if len(about) == 0 {
		return message{}, fmt.Errorf("Cinder has no message about volume %s", id)
	}
	return slices.MaxFunc(about, func(a, b message) int { return cmp.Compare(a.Created, b.Created) }), nil
}
