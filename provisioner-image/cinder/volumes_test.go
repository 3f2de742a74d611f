package cinder_test

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// A full page is linked to the next one, which is empty in the end.
func TestListReadsEveryPage(t *testing.T) {
	for _, release := range cindertest.Releases() {
		for _, project := range []string{"admin", cindertest.Project} {
			for volumes, want := range map[int]int{0: 1, 1: 1, 2: 2, 5: 3} {
				server := cindertest.NewRelease(release)
				server.Page = 2
				for range volumes {
					server.Add("available", owned("x"))
				}
				c := connect(t, credentials.Login{Endpoint: server.Endpoint(), Project: project})
				if _, err := c.Find(t.Context(), "other"); err != nil {
					t.Fatal(err)
				}
				asked := record(server)
				if found, err := c.Find(t.Context(), "x"); err != nil || len(found) != volumes || len(*asked) != want {
					t.Errorf("Cinder %d, project %s: %d of %d volumes by %q, %v", release, project, len(found), volumes, *asked, err)
				}
				server.Close()
			}
		}
	}
}

// onlyTwo is a client whose lists have pages of two volumes.
type onlyTwo struct{ pages int }

func (o *onlyTwo) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/volumes/detail") {
		o.pages++
		r = r.Clone(r.Context())
		query := r.URL.Query()
		query.Set("limit", "2")
		r.URL.RawQuery = query.Encode()
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Cinder's link to the next page has the filter of the first one.
func TestListOfAClusterReadsEveryPage(t *testing.T) {
	onEachCinder(t, func(t *testing.T, login credentials.Login) {
		t.Helper()
		pages, cluster := &onlyTwo{}, rand.Text()
		c, err := cinder.Connect(t.Context(), login, http.Client{Transport: pages, Timeout: time.Minute}, wait)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{cluster, cluster, "another", cluster} {
			s := spec(t, c)
			s.Metadata[volume.KeyCluster] = name
			if _, _, err := keep(c).Ensure(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		pages.pages = 0
		found, err := c.List(t.Context(), cluster)
		if err != nil || len(found) != 3 || pages.pages != 2 {
			t.Errorf("%d volumes on %d pages, %v", len(found), pages.pages, err)
		}
	})
}

// Behind a proxy Cinder links to its own address, without TLS and below another path, unless
// public_endpoint is set.
func TestNextPageIsAskedForAtTheConfiguredEndpoint(t *testing.T) {
	for name, public := range map[string]string{
		"its own address":           "",
		"an address without a host": "http://internal.invalid:8776",
	} {
		server := cindertest.New()
		t.Cleanup(server.Close)
		server.Page, server.PublicEndpoint = 2, public
		for range 5 {
			server.Add("available", owned("x"))
		}
		var hosts []string
		front := proxy(t, server, func(r *http.Request) { hosts = append(hosts, r.Host) })
		c := connect(t, credentials.Login{Endpoint: front.URL + "/volume/v3", Project: "admin", Insecure: true})
		found, err := c.Find(t.Context(), "x")
		distinct := slices.CompactFunc(slices.Clone(found), func(a, b volume.Volume) bool { return a.ID == b.ID })
		if err != nil || len(distinct) != 5 || len(hosts) != 3 {
			t.Errorf("%s: %d volumes by %d requests through the proxy, %v", name, len(distinct), len(hosts), err)
		}
	}
}

// proxy serves a Cinder by TLS below the path /volume.
func proxy(t *testing.T, server *cindertest.Server, see func(*http.Request)) *httptest.Server {
	t.Helper()
	behind, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	pass := http.StripPrefix("/volume", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }})
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		see(r)
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front
}

// Where a page begins the ID of the last volume of the page before says, and Cinder answers 404 once
// that volume is deleted.
func TestListIsReadAgainIfTheLastVolumeOfAPageIsDeleted(t *testing.T) {
	for deletions := range 4 {
		server := cindertest.New()
		t.Cleanup(server.Close)
		server.Page = 2
		for range 9 {
			server.Add("available", owned("x"))
		}
		left := deletions
		server.Gate = func(r *http.Request) cindertest.Fate {
			if marker := r.URL.Query().Get("marker"); marker != "" && left > 0 {
				left--
				server.Forget(marker)
			}
			return cindertest.Answer
		}
		found, err := connect(t, credentials.Login{Endpoint: server.Endpoint()}).Find(t.Context(), "x")
		if deletions < 3 && (err != nil || len(found) != 9-deletions) {
			t.Errorf("%d volumes deleted: %d found, %v", deletions, len(found), err)
		}
		if e, ok := errors.AsType[*volume.Error](err); deletions == 3 && (!ok || e.Kind != volume.Busy) {
			t.Errorf("the list is not tried again later: %v", err)
		}
	}
}
