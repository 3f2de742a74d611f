package cinder_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// Before Yoga (20) Cinder answers 404 to URLs without a project, from Yoga on to those with the
// usual "admin". What works is found out once, and with no request more where the first one works.
func TestProjectIsInURLWhereCinderAcceptsIt(t *testing.T) {
	const hex, list, shown = "00000000000000000000000000000001", "/volumes/detail", "/volumes/abc"
	for _, tc := range []struct {
		releases []int
		project  string
		asked    []string
	}{
		{[]int{17}, "admin", []string{"/v3" + list, "/v3/admin" + list, "/v3/admin" + shown, "/v3/admin/volumes"}},
		{[]int{17}, "", []string{"/v3" + list, "/v3/admin" + list, "/v3/admin" + shown, "/v3/admin/volumes"}},
		{[]int{21, 26, 28, 29}, "admin", []string{"/v3" + list, "/v3" + shown, "/v3/volumes"}},
		{[]int{21, 26, 28, 29}, "", []string{"/v3" + list, "/v3" + shown, "/v3/volumes"}},
		{cindertest.Releases(), hex, []string{"/v3/" + hex + list, "/v3/" + hex + shown, "/v3/" + hex + "/volumes"}},
	} {
		for _, release := range tc.releases {
			server := cindertest.NewRelease(release)
			asked := record(server)
			c := connect(t, credentials.Login{Endpoint: server.Endpoint(), Project: tc.project})
			if _, err := c.Find(t.Context(), "x"); err != nil {
				t.Errorf("Cinder %d, project %q: %v", release, tc.project, err)
			}
			if _, err := c.Get(t.Context(), "abc"); !volume.Is(err, volume.Gone) {
				t.Errorf("Cinder %d, project %q: %v", release, tc.project, err)
			}
			if _, err := c.Create(t.Context(), wanted); err != nil || len(server.Volumes()) != 1 {
				t.Errorf("Cinder %d, project %q: %v", release, tc.project, err)
			}
			if !slices.Equal(*asked, tc.asked) {
				t.Errorf("Cinder %d, project %q: asked %q, want %q", release, tc.project, *asked, tc.asked)
			}
			server.Close()
		}
	}
}

// record returns the paths of all requests from now on.
func record(server *cindertest.Server) *[]string {
	var asked []string
	server.Gate = func(r *http.Request) cindertest.Fate { asked = append(asked, r.URL.Path); return cindertest.Answer }
	return &asked
}

// The first request of a run may be about a volume that does not exist, or change something.
func TestFirstAnswerDecidesWhetherTheProjectIsInTheURL(t *testing.T) {
	for _, release := range cindertest.Releases() {
		server := cindertest.NewRelease(release)
		t.Cleanup(server.Close)
		asked := record(server)
		login := credentials.Login{Endpoint: server.Endpoint(), Project: "admin"}
		needed := map[bool]int{true: 2, false: 1}[release == 17]
		if _, err := connect(t, login).Get(t.Context(), "abc"); !volume.Is(err, volume.Gone) || len(*asked) != needed {
			t.Errorf("Cinder %d: %v, asked %q", release, err, *asked)
		}
		if _, err := connect(t, login).Create(t.Context(), wanted); err != nil || len(server.Volumes()) != 1 {
			t.Errorf("Cinder %d: %v, %s", release, err, ids(server))
		}
	}
}

// A URL that Cinder knows in neither form is the administrator's to correct, and a lost answer to a
// request that changes something is not taken for a refusal.
func TestURLThatCinderKnowsInNoFormIsMisconfigured(t *testing.T) {
	server := cindertest.NewRelease(17)
	t.Cleanup(server.Close)
	login := credentials.Login{Endpoint: server.Endpoint() + "/elsewhere", Project: "admin"}
	if _, err := connect(t, login).Find(t.Context(), "x"); !volume.Is(err, volume.Misconfigured) {
		t.Error(err)
	}
	server.Gate = func(r *http.Request) cindertest.Fate {
		if strings.Contains(r.URL.Path, "/admin/") {
			return cindertest.DropAnswer
		}
		return cindertest.Answer
	}
	login.Endpoint = server.Endpoint()
	if _, err := connect(t, login).Create(t.Context(), wanted); !volume.Is(err, volume.Unavailable) || len(server.Volumes()) != 1 {
		t.Errorf("%v, %s", err, ids(server))
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
		"too many":      {413, `{"overLimitFault":{"code":413,"message":"This request was rate-limited."}}`, volume.Unavailable, "rate-limited"},
		"proxy's limit": {413, `<h1>413</h1>`, volume.Unavailable, "HTTP 413"},
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
