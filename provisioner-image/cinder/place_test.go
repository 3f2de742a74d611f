package cinder_test

import (
	"fmt"
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

const project = "00000000000000000000000000000001"

// catalog is a keystone with a Cinder in two regions, one of them with the project in its URL.
func catalog(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Subject-Token", "token")
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
		fmt.Fprintf(w, `{"token": {"expires_at": "2099-01-01T00:00:00.000000Z", "project": {"id": %q, "name": "p"}, "catalog": [
			{"type": "volumev3", "name": "cinderv3", "endpoints": [
				{"interface": "public", "region": "one", "region_id": "one", "url": "http://192.0.2.1:8776/v3/%s"},
				{"interface": "public", "region": "two", "region_id": "two", "url": "http://192.0.2.2:8776/v3/"}]}]}}`, project, project)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v3"
}

func TestPlaceIsEndpointRegionAndProject(t *testing.T) {
	login := credentials.Login{AuthURL: catalog(t), Username: "u", Password: "x", Project: "p"}
	login.Region = "one"
	two, beside := login, login
	two.Region = "two"
	beside.Region, beside.Endpoint = "", "http://192.0.2.3:8776/volume/v3"
	for name, tc := range map[string]struct {
		login credentials.Login
		want  volume.Place
	}{
		"another region by name":                          {login, volume.Place{Endpoint: "http://192.0.2.1:8776/v3", Region: "one", Project: project}},
		"a region by name":                                {two, volume.Place{Endpoint: "http://192.0.2.2:8776/v3", Region: "two", Project: project}},
		"an endpoint that the login names, with keystone": {beside, volume.Place{Endpoint: "http://192.0.2.3:8776/volume/v3", Project: project}},
		"a token that was given, of which nothing is noted": {
			credentials.Login{AuthURL: login.AuthURL, Token: "to:ken", Region: "one"},
			volume.Place{Endpoint: "http://192.0.2.1:8776/v3", Region: "one", Project: project},
		},
		"a user in the URL, of whom nothing is noted": {
			credentials.Login{Endpoint: "http://u:hush@192.0.2.1:8776/v3", Project: "admin"},
			volume.Place{Endpoint: "http://192.0.2.1:8776/v3", Project: "admin"},
		},
		"without keystone": {
			credentials.Login{Endpoint: "http://192.0.2.1:8776/v3", Project: "admin"},
			volume.Place{Endpoint: "http://192.0.2.1:8776/v3", Project: "admin"},
		},
		"without keystone, the project in the URL": {
			credentials.Login{Endpoint: "http://192.0.2.1:8776/v3/", ProjectID: project},
			volume.Place{Endpoint: "http://192.0.2.1:8776/v3", Project: project},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cinder.NewBackend(connect(t, tc.login), wait).Place(); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// Some catalogs name Cinder without a version, or without a project, which it wants before Yoga.
// Cinder is not asked for its versions: a proxy may answer with a page of its own.
func TestCatalogWithoutVersionIsV3(t *testing.T) {
	for _, release := range cindertest.Releases() {
		for _, tc := range []struct {
			kind, below string
			asked       []string
		}{
			{"volumev3", "/v3/" + cindertest.Project, []string{"/volume/v3/" + cindertest.Project + "/volumes/detail"}},
			{"volumev3", "", []string{"/volume/v3/volumes/detail"}},
			{"block-storage", "/", []string{"/volume/v3/volumes/detail"}},
		} {
			k, server := keystone(t)
			server.SetRelease(release)
			var asked []string
			front := proxy(t, server, func(r *http.Request) { asked = append(asked, r.URL.Path) })
			k.Type, k.CatalogURL = tc.kind, front.URL+"/volume"+tc.below
			c := connect(t, credentials.Login{
				AuthURL: k.URL + "/v3", Username: "u", Password: "Passw0rd!", Project: "p", Insecure: true,
			})
			_, err := c.Find(t.Context(), "x")
			want := tc.asked
			if release == 17 && tc.below != "/v3/"+cindertest.Project {
				want = append(want, "/volume/v3/"+cindertest.Project+"/volumes/detail")
			}
			if err != nil || !slices.Equal(asked, want) {
				t.Errorf("Cinder %d, %s at %q: asked %q (%v), want %q", release, tc.kind, tc.below, asked, err, want)
			}
		}
	}
}

// Of the catalog's addresses only one of the third version is used.
func TestOnlyAnEndpointOfTheThirdVersionIsUsed(t *testing.T) {
	for address, found := range map[string]string{
		"http://192.0.2.1:8776/v2/" + cindertest.Project: "",
		"http://192.0.2.1:8776/v1":                       "",
		"http://192.0.2.1:8776/v3":                       "http://192.0.2.1:8776/v3",
		"http://192.0.2.1/volume":                        "http://192.0.2.1/volume/v3",
		"":                                               "",
	} {
		k, _ := keystone(t)
		k.CatalogURL, k.Type = address, "volume"
		login := credentials.Login{AuthURL: k.URL + "/v3", Username: "u", Password: "Passw0rd!", Project: "p"}
		c, err := cinder.Connect(t.Context(), login, http.Client{}, wait)
		if found == "" {
			if !volume.Is(err, volume.Misconfigured) || !strings.Contains(err.Error(), "keystone lists no block-storage endpoint") {
				t.Errorf("%q: %v", address, err)
			}
			continue
		}
		if err != nil || cinder.NewBackend(c, wait).Place().Endpoint != found {
			t.Errorf("%q: %v", address, err)
		}
	}
}
