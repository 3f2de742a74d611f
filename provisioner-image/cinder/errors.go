package cinder

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// kinds says what an HTTP status means to one request, where that differs from the rule.
type kinds map[int]volume.Kind

// misconfigured lists statuses by which Cinder says that what we named does not exist.
func misconfigured(statuses ...int) kinds {
	k := kinds{}
	for _, s := range statuses {
		k[s] = volume.Misconfigured
	}
	return k
}

// failure turns an error of gophercloud's into the domain's. It never repeats a request's content.
func failure(err error, doing string, special kinds) error {
	if err == nil {
		return nil
	}
	answer, ok := answerIn(err)
	if !ok {
		return &volume.Error{Kind: volume.Unavailable, Doing: doing, Err: err}
	}
	kind, ok := special[answer.Actual]
	if !ok {
		kind = kindOf(answer.Actual)
	}
	return &volume.Error{Kind: kind, Doing: doing, Said: words(answer) + patience(answer), RequestID: requestID(answer)}
}

// answerIn finds Cinder's answer in an error. Errors of renewing a token hold two and unwrap to none.
func answerIn(err error) (gophercloud.ErrUnexpectedResponseCode, bool) {
	if e, ok := errors.AsType[*gophercloud.ErrUnableToReauthenticate](err); ok {
		return errors.AsType[gophercloud.ErrUnexpectedResponseCode](e.ErrReauth)
	}
	if e, ok := errors.AsType[*gophercloud.ErrErrorAfterReauthentication](err); ok {
		return errors.AsType[gophercloud.ErrUnexpectedResponseCode](e.ErrOriginal)
	}
	return errors.AsType[gophercloud.ErrUnexpectedResponseCode](err)
}

// kindOf is the rule. 400 is how Cinder says that a volume's status does not allow an action.
func kindOf(status int) volume.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return volume.Denied
	case http.StatusNotFound:
		return volume.Gone
	case http.StatusRequestEntityTooLarge:
		return volume.Full
	case http.StatusBadRequest, http.StatusConflict:
		return volume.Busy
	case http.StatusMultipleChoices, http.StatusNotAcceptable, http.StatusMethodNotAllowed, http.StatusGone:
		return volume.Misconfigured
	default:
		return volume.Unavailable
	}
}

// words are Cinder's own: {"badRequest": {"code": 400, "message": "…"}}. What is not in this form (a
// proxy's page, a wrong URL) is named by its status alone.
func words(answer gophercloud.ErrUnexpectedResponseCode) string {
	var body map[string]json.RawMessage
	_ = json.Unmarshal(answer.Body, &body) // no JSON: an empty body, as below
	for _, raw := range body {
		var inner struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(raw, &inner) == nil && inner.Message != "" {
			return strings.Join(strings.Fields(inner.Message), " ")
		}
	}
	return fmt.Sprintf("HTTP %d %s", answer.Actual, http.StatusText(answer.Actual))
}

// patience is what an overloaded Cinder, or a proxy before it, asks for.
func patience(answer gophercloud.ErrUnexpectedResponseCode) string {
	wait := answer.ResponseHeader.Get("Retry-After")
	if wait == "" || wait == "0" {
		return ""
	}
	if _, err := strconv.Atoi(wait); err != nil {
		return "; it asks to wait until " + wait
	}
	return "; it asks to wait for " + wait + " s"
}

func requestID(answer gophercloud.ErrUnexpectedResponseCode) string {
	return answer.ResponseHeader.Get("X-Openstack-Request-Id")
}

// noEndpoint says which part of keystone's catalog was looked in.
func noEndpoint(err error, login credentials.Login) error {
	return &volume.Error{
		Kind:  volume.Misconfigured,
		Doing: "find Cinder in keystone's catalog",
		Said: fmt.Sprintf("keystone lists no block-storage endpoint for region %q and endpoint type %q",
			login.Region, login.EndpointType),
		Err: err,
	}
}
