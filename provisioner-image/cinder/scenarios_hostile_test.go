package cinder_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/transport"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// otherHost returns the URL of a server to which no request may come.
func otherHost(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host is sent %s %s with the token %q", r.Method, r.URL, r.Header.Get("X-Auth-Token"))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// redirecting returns the URL of a server that redirects every request.
func redirecting(t *testing.T, status int, location string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Location"] = []string{location}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// mustBeRedirect checks that an error says where the redirect leads, to the administrator alone.
func mustBeRedirect(t *testing.T, err error, to string) {
	t.Helper()
	if !volume.Is(err, volume.Misconfigured) || !strings.Contains(err.Error(), strconv.Quote(to)) || !strings.Contains(err.Error(), "Remedy: ") {
		t.Errorf("the error is %v, without %q", err, to)
	}
	if strings.ContainsFunc(fmt.Sprint(err), unicode.IsControl) {
		t.Errorf("%q has control characters", err)
	}
}

// net/http sends X-Auth-Token with the request that follows a redirect, to any host.
func TestTokenIsNotSentWhereCinderRedirects(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		k, _ := keystone(t)
		other := otherHost(t)
		k.CatalogURL = redirecting(t, status, other+"/v3/x?y=z") + "/v3/" + cindertest.Project
		c := connect(t, credentials.Login{AuthURL: k.URL + "/v3", Username: "u", Password: "Passw0rd!", Project: "p"})
		_, err := c.Find(t.Context(), "x")
		mustBeRedirect(t, err, other+"/v3/x")
		_, err = c.Create(t.Context(), wanted)
		mustBeRedirect(t, err, other+"/v3/x")
		mustBeRedirect(t, c.Delete(t.Context(), "x"), other+"/v3/x")
	}
}

// A 307 repeats the POST, with the password in its body.
func TestPasswordIsNotSentWhereKeystoneRedirects(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		other := otherHost(t)
		_, err := cinder.Connect(t.Context(), credentials.Login{
			AuthURL: redirecting(t, status, other+"/v3/auth/tokens") + "/v3", Username: "u", Password: "Passw0rd!", Project: "p",
		}, http.Client{}, wait)
		mustBeRedirect(t, err, other+"/v3/auth/tokens")
	}
}

// What a redirect says is shown to an administrator.
func TestRedirectIsShownInOneLine(t *testing.T) {
	for location, shown := range map[string]string{
		"https://cinder.example:8776/v3/":                  "https://cinder.example:8776/v3/",
		"//cinder.example/\u202e\u009b31m":                 "http://cinder.example/%E2%80%AE%C2%9B31m",
		"https://u:secret@cinder.example/":                 "https://cinder.example/",
		"https://" + strings.Repeat("x", 300) + ".example": "https://" + strings.Repeat("x", 192),
		"mailto:x": "an invalid address",
	} {
		c := connect(t, credentials.Login{Endpoint: redirecting(t, http.StatusMovedPermanently, location) + "/v3"})
		_, err := c.Get(t.Context(), "x")
		mustBeRedirect(t, err, shown)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error is %v", err)
		}
	}
}

// listing returns the URL of a Cinder of one volume, whose list goes on for ever.
func listing(t *testing.T, next func(page int) string, asked *int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if *asked++; *asked > 1100 {
			http.Error(w, "the list should have ended", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"volumes": [{"id": "1"}], "volumes_links": [{"rel": "next", "href": "http://192.0.2.1/v3/volumes/detail?marker=%s"}]}`, next(*asked))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v3"
}

func TestListWithoutAnEndIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		next        func(page int) string
		said        string
		most, pages int
	}{
		"always the same page": {func(int) string { return "1" }, "names an earlier page as its next one", 3, 2},
		"two pages in turn":    {func(page int) string { return strconv.Itoa(page % 2) }, "names an earlier page as its next one", 4, 3},
		"ever new pages":       {strconv.Itoa, "more than 1000 pages", 1001, 1001},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			c := connect(t, credentials.Login{Endpoint: listing(t, tc.next, &asked), ProjectID: cindertest.Project})
			_, err := c.List(t.Context(), "")
			if !volume.Is(err, volume.Unavailable) || !strings.Contains(err.Error(), tc.said) || asked != tc.pages {
				t.Errorf("%v, after %d requests", err, asked)
			}
		})
	}
}

// gophercloud's lists follow a link "next" to any host.
func TestTokenIsNotSentWhereALinkOfAListLeads(t *testing.T) {
	other := otherHost(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"attachments": [{"id": "1", "volume_id": "x"}], "links": {"next": %q}, "attachments_links": [{"rel": "next", "href": %q}]}`, other, other)
	}))
	t.Cleanup(server.Close)
	c := connect(t, credentials.Login{Endpoint: server.URL + "/v3", ProjectID: cindertest.Project})
	if found, err := c.Attachments(t.Context(), "x"); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
}

// Events name commands for administrators, with the IDs of volumes, attachments and snapshots in them.
func TestAnIDThatIsNoneIsAnError(t *testing.T) {
	const id = `$(touch PWNED)`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusAccepted)
		}
		v := fmt.Sprintf(`{"id": %q, "volume_id": "x", "metadata": {%q: "x"}}`, id, volume.KeyUID)
		fmt.Fprintf(w, `{"volume": %[1]s, "volumes": [%[1]s], "attachments": [%[1]s], "snapshots": [%[1]s]}`, v)
	}))
	t.Cleanup(server.Close)
	c := connect(t, credentials.Login{Endpoint: server.URL + "/v3", ProjectID: cindertest.Project})
	_, got := c.Get(t.Context(), "x")
	_, made := c.Create(t.Context(), volume.Spec{Name: "x"})
	_, found := c.Find(t.Context(), "x")
	_, attachments := c.Attachments(t.Context(), "x")
	_, snapshots := c.Snapshots(t.Context(), "x")
	for of, err := range map[string]error{"get": got, "create": made, "find": found, "attachments": attachments, "snapshots": snapshots} {
		if !volume.Is(err, volume.Unavailable) || !strings.Contains(err.Error(), "is not an ID") {
			t.Errorf("%s: %v", of, err)
		}
	}
}

// The answers of a storage do not fill the memory of the node.
func TestAnswerThatIsTooLargeIsAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/refused") {
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprint(w, `{"volumes": [], "volume": {}, "x": "`)
		text := strings.Repeat("x", 1<<20)
		for range transport.MaxAnswer>>20 + 1 {
			fmt.Fprint(w, text)
		}
		fmt.Fprint(w, `"}`)
	}))
	t.Cleanup(server.Close)
	c := connect(t, credentials.Login{Endpoint: server.URL + "/v3", ProjectID: cindertest.Project})
	_, listed := c.Find(t.Context(), "x")
	_, got := c.Get(t.Context(), "x")
	for _, err := range []error{listed, got} {
		if !volume.Is(err, volume.Unavailable) || !strings.Contains(err.Error(), "the limit of 32 MiB") {
			t.Errorf("the error is %v", err)
		}
	}
	if _, err := c.Get(t.Context(), "refused"); !volume.Is(err, volume.Unavailable) {
		t.Errorf("the error is %v", err)
	}
}
