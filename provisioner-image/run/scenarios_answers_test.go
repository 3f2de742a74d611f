package run_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// Each answer of Cinder to a create becomes an exit code and one sentence with the request ID.
// Whatever the answer, the request is sent only once.
func TestAnswerToCreateBecomesExitCodeAndSentence(t *testing.T) {
	const id = "req-6b1e"
	said := func(status int, kind, message string) *cindertest.Reply {
		return &cindertest.Reply{
			Status: status, Header: map[string]string{"X-Openstack-Request-Id": id},
			Body: `{"` + kind + `":{"code":1,"message":"` + message + `"}}`,
		}
	}
	slow := said(http.StatusTooManyRequests, "overLimit", "too many")
	slow.Header["Retry-After"] = "70"
	down := &cindertest.Reply{Status: 503, Header: map[string]string{"Retry-After": "30"}, Body: "<h1>down</h1>"}
	tests := map[string]struct {
		reply  *cindertest.Reply
		fate   cindertest.Fate
		typed  string
		code   int
		phrase string
	}{
		"400": {said(400, "badRequest", "no good"), 0, "", contract.ExitConfig, "no good (request " + id + "); an administrator must correct the class"},
		"400, a size": {
			said(400, "badRequest", "Invalid input received: Volume size '3'GB cannot be smaller than the snapshot size 4GB. They must be >= original snapshot size."),
			0, "", contract.ExitBadRequest, "They must be >= original snapshot size. (request " + id + ")",
		},
		"401":                             {said(401, "error", "who"), 0, "", contract.ExitNoPerm, "who (request " + id + "); an administrator must correct the login"},
		"403":                             {said(403, "forbidden", "policy"), 0, "", contract.ExitNoPerm, "policy (request " + id + "); an administrator must correct the login"},
		"404":                             {said(404, "itemNotFound", "no type"), 0, "", contract.ExitConfig, "no type (request " + id + ")"},
		"406":                             {said(406, "computeFault", "too new"), 0, "", contract.ExitConfig, "too new (request " + id + ")"},
		"409":                             {said(409, "conflictingRequest", "busy"), 0, "", contract.ExitTempFail, "busy (request " + id + "); it is tried again"},
		"413":                             {said(413, "overLimit", "quota"), 0, "", contract.ExitCapacity, "quota (request " + id + "); request less"},
		"429":                             {slow, 0, "", contract.ExitUnavailable, "too many; the server asks to wait for 70 s (request " + id + "); it is tried again"},
		"503":                             {down, 0, "", contract.ExitUnavailable, "HTTP 503 Service Unavailable; the server asks to wait for 30 s; it is tried again"},
		"500":                             {said(500, "computeFault", "erred"), 0, "", contract.ExitUnavailable, "erred (request " + id + ")"},
		"dropped before it was done":      {nil, cindertest.DropRequest, "", contract.ExitUnavailable, "the server does not answer; it is tried again"},
		"dropped after it was done":       {nil, cindertest.DropAnswer, "", contract.ExitDone, ""},
		"done, and then silence":          {nil, cindertest.Hang, "", contract.ExitDone, ""},
		"accepted, and then in an error":  {nil, 0, cindertest.TypeFull, contract.ExitCapacity, "Could not find any available weighted backend"},
		"a page that is not Cinder's own": {&cindertest.Reply{Status: 418, Body: "<h1>teapot</h1>"}, 0, "", contract.ExitUnavailable, "HTTP 418"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.timeout = time.Second
			creates := 0
			isCreate := func(r *http.Request) bool {
				return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/volumes")
			}
			w.cinder.Gate = func(r *http.Request) cindertest.Fate {
				if !isCreate(r) {
					return cindertest.Answer
				}
				creates++
				return tc.fate
			}
			w.cinder.Instead = func(r *http.Request) *cindertest.Reply {
				if !isCreate(r) {
					return nil
				}
				return tc.reply
			}
			result := w.run(t, w.request(contract.Provision, func(r *contract.Request) {
				if tc.typed != "" {
					r.Properties["type"] = tc.typed
				}
			}), skeleton())
			if claim := contract.ForClaim(result.Message); result.Code != tc.code || !strings.Contains(claim, tc.phrase) {
				t.Errorf("code %d, %q; want %d and %q", result.Code, claim, tc.code, tc.phrase)
			}
			if creates != 1 {
				t.Errorf("%d requests to create", creates)
			}
		})
	}
}
