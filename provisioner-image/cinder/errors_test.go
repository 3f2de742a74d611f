package cinder_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/cindertest"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Any other project works only with URLs that leave it out.
func TestProjectIsInURLWhereCinderAcceptsIt(t *testing.T) {
	for project, path := range map[string]string{
		"admin":                            "/v3/volumes/detail",
		"":                                 "/v3/volumes/detail",
		"00000000000000000000000000000001": "/v3/00000000000000000000000000000001/volumes/detail",
	} {
		server := cindertest.New()
		var asked string
		server.Gate = func(r *http.Request) cindertest.Fate { asked = r.URL.Path; return cindertest.Answer }
		c := connect(t, credentials.Login{Endpoint: server.Endpoint(), Project: project})
		if _, err := c.Find(t.Context(), "x"); err != nil || asked != path {
			t.Errorf("project %q: asked %s (%v), want %s", project, asked, err, path)
		}
		server.Close()
	}
}

// Every answer that is no success becomes a kind of failure, whatever its form.
func TestAnswerBecomesKindOfFailure(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		kind   volume.Kind
		said   string
	}{
		"unauthorized":  {401, `{"error":{"code":401,"message":"The request you have made requires authentication."}}`, volume.Denied, "requires authentication"},
		"forbidden":     {403, `{"forbidden":{"code":403,"message":"Policy doesn't allow it"}}`, volume.Denied, "Policy doesn't allow it"},
		"wrong URL":     {404, `<html>not found</html>`, volume.Misconfigured, "HTTP 404 Not Found"},
		"wrong project": {400, `{"badRequest":{"code":400,"message":"Malformed request url"}}`, volume.Misconfigured, "Malformed request url"},
		"too new":       {406, `{"computeFault":{"code":406,"message":"Version 3.99 is not supported by the API."}}`, volume.Misconfigured, "3.99"},
		"conflict":      {409, `{"conflictingRequest":{"code":409,"message":"busy"}}`, volume.Busy, "busy"},
		"quota":         {413, `{"overLimit":{"code":413,"message":"VolumeLimitExceeded"}}`, volume.Full, "VolumeLimitExceeded"},
		"too often":     {429, ``, volume.Unavailable, "HTTP 429"},
		"broken":        {500, `{"computeFault":{"code":500,"message":"The server has either erred"}}`, volume.Unavailable, "erred"},
		"proxy":         {503, `<h1>503</h1>`, volume.Unavailable, "HTTP 503"},
		"no JSON":       {200, `<h1>hello</h1>`, volume.Unavailable, "cannot unmarshal"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			}))
			defer server.Close()
			_, err := connect(t, credentials.Login{Endpoint: server.URL + "/v3"}).Find(t.Context(), "uid-1")
			if !volume.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.said) || !strings.Contains(err.Error(), "claim uid-1") {
				t.Errorf("error %v, want kind %d and %q", err, tc.kind, tc.said)
			}
		})
	}
}

func TestUnreachableCinderIsUnavailable(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	_, err := connect(t, credentials.Login{Endpoint: server.URL + "/v3"}).Find(t.Context(), "x")
	if !volume.Is(err, volume.Unavailable) {
		t.Error(err)
	}
	_, err = cinder.Connect(t.Context(), credentials.Login{AuthURL: server.URL + "/v3", Username: "u", Password: "hush"}, http.Client{}, wait)
	if !volume.Is(err, volume.Unavailable) || strings.Contains(err.Error(), "hush") {
		t.Error(err)
	}
}
