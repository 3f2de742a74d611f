package failure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/transport"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Kinds is what an HTTP status means to one request, where that differs from kindOfStatus.
type Kinds map[int]volume.Kind

// Misconfigured returns the statuses by which Cinder says that something in the request does not
// exist.
func Misconfigured(statuses ...int) Kinds {
	k := Kinds{}
	for _, s := range statuses {
		k[s] = volume.Misconfigured
	}
	return k
}

// Unsuitable is what the refusal of a size means: only another size helps, or an administrator.
var Unsuitable = Kinds{http.StatusBadRequest: volume.Unsuitable, http.StatusRequestEntityTooLarge: volume.Unsuitable}

var (
	// sizeOfType is in the messages about sizes that the type or the source does not allow. The
	// status of the answer is that of every other fault of the request.
	sizeOfType = regexp.MustCompile(`(?i)\bvolume size\b`)
	// sizeOfQuota is the name of Cinder's error for a volume that is larger than the quota allows
	// any volume to be. It has the status of a quota that is used up.
	sizeOfQuota = "VolumeSizeExceedsLimit"
)

// IsOfSize reports whether Cinder says that it makes no volume of this size.
func IsOfSize(err error) bool {
	answer, ok := AnswerIn(err)
	switch {
	case !ok:
		return false
	case answer.Actual == http.StatusBadRequest:
		return sizeOfType.MatchString(MessageIn(answer))
	default:
		return answer.Actual == http.StatusRequestEntityTooLarge && strings.HasPrefix(MessageIn(answer), sizeOfQuota)
	}
}

// Of converts an error of gophercloud into one of the domain. It never repeats the content of a
// request.
func Of(err error, doing string, special Kinds) error {
	if err == nil {
		return nil
	}
	answer, ok := AnswerIn(err)
	if said := credentials.TLSFault(err); said != "" {
		return &volume.Error{Kind: volume.Denied, Doing: doing, Said: said, Err: err}
	}
	if e, cut := errors.AsType[*transport.AnswerError](err); cut {
		return &volume.Error{Kind: volume.Unavailable, Doing: doing, Said: e.Said, Err: errors.New(e.Asked)}
	}
	if !ok {
		return &volume.Error{Kind: volume.Unavailable, Doing: doing, Err: err}
	}
	if to := redirect(answer); to != "" {
		return &volume.Error{
			Kind: volume.Misconfigured, Doing: doing, Said: "the server answers with a redirect, which is not followed: the login would be sent to another address",
			Err: fmt.Errorf("HTTP %d to %q. Remedy: if that address is right, correct the present one, in the login (auth-url, cinder-endpoint) or in keystone's catalog",
				answer.Actual, to),
		}
	}
	return &volume.Error{Kind: kindOf(answer, special), Doing: doing, Said: MessageIn(answer) + retryAfter(answer), RequestID: RequestID(answer)}
}

// kindOf returns what an answer means to a request.
func kindOf(answer gophercloud.ErrUnexpectedResponseCode, special Kinds) volume.Kind {
	kind, ok := special[answer.Actual]
	if !ok {
		kind = kindOfStatus(answer.Actual)
	}
	switch {
	case kind == volume.Gone && !IsOfAResource(answer.Body):
		// An ingress once answered so for minutes, and volumes counted as deleted
		// (TestAProxysNotFoundIsNoDeletion).
		return volume.Unavailable
	case answer.Actual == http.StatusRequestEntityTooLarge && !isOfQuota(answer.Body):
		// A GET after an extend was answered so, and a volume that had grown counted as one that had
		// not (TestALimitOfRequestsDoesNotSayThatNothingHasGrown).
		return volume.Unavailable
	default:
		return kind
	}
}

// isOfQuota reports whether an answer 413 is about a quota (Fault in cinder/api/openstack/wsgi.py). Others
// are about a limit of requests (OverLimitFault, there), or a proxy's.
func isOfQuota(body []byte) bool { return bytes.Contains(body, []byte(`"overLimit"`)) }

// longestAddress is how much of an address that an answer names is repeated, in bytes.
const longestAddress = 200

// redirect returns where an answer redirects to, without its query, or "" if it does not.
func redirect(answer gophercloud.ErrUnexpectedResponseCode) string {
	switch answer.Actual {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return ""
	}
	from, err := url.Parse(answer.URL)
	if err != nil {
		return unnamed
	}
	to, err := from.Parse(answer.ResponseHeader.Get("Location"))
	if err != nil || to.Host == "" {
		return unnamed
	}
	shown := (&url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}).String()
	return strings.ToValidUTF8(shown[:min(len(shown), longestAddress)], "")
}

// unnamed stands for an address that cannot be read.
const unnamed = "an invalid address"

// AnswerIn returns Cinder's answer in an error. Errors of renewing a token hold two errors and
// unwrap to none.
func AnswerIn(err error) (gophercloud.ErrUnexpectedResponseCode, bool) {
	if e, ok := errors.AsType[*gophercloud.ErrUnableToReauthenticate](err); ok {
		return errors.AsType[gophercloud.ErrUnexpectedResponseCode](e.ErrReauth)
	}
	if e, ok := errors.AsType[*gophercloud.ErrErrorAfterReauthentication](err); ok {
		return errors.AsType[gophercloud.ErrUnexpectedResponseCode](e.ErrOriginal)
	}
	return errors.AsType[gophercloud.ErrUnexpectedResponseCode](err)
}

// kindOfStatus returns what an HTTP status means to most requests. By 400 Cinder says that a
// volume's status does not allow an action.
func kindOfStatus(status int) volume.Kind {
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

// IsOfAResource reports whether an answer 404 is about a volume or attachment that does not exist.
// Others are about the URL, or a proxy's.
func IsOfAResource(body []byte) bool { return bytes.Contains(body, []byte("itemNotFound")) }

// MessageIn returns Cinder's message: {"badRequest": {"code": 400, "message": "…"}}. An answer in
// another form (a proxy's page, a wrong URL) is described by its status only.
func MessageIn(answer gophercloud.ErrUnexpectedResponseCode) string {
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

// retryAfter returns how long an overloaded Cinder, or a proxy before it, asks to wait, as part of
// a sentence.
func retryAfter(answer gophercloud.ErrUnexpectedResponseCode) string {
	wait := answer.ResponseHeader.Get("Retry-After")
	if wait == "" || wait == "0" {
		return ""
	}
	if _, err := strconv.Atoi(wait); err != nil {
		return "; the server asks to wait until " + wait
	}
	return "; the server asks to wait for " + wait + " s"
}

// RequestID returns the ID by which Cinder logs the request.
func RequestID(answer gophercloud.ErrUnexpectedResponseCode) string {
	return answer.ResponseHeader.Get("X-Openstack-Request-Id")
}
