package cinder_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

func TestARegionIsNamedWhereTheCatalogHasSeveral(t *testing.T) {
	login := credentials.Login{AuthURL: catalog(t), Username: "u", Password: "x", Project: "p"}
	_, err := cinder.Connect(t.Context(), login, http.Client{}, wait)
	if !volume.Is(err, volume.Misconfigured) || !strings.Contains(err.Error(), "Cinder is in the regions one, two, and the login names none of them: name one") {
		t.Error(err)
	}
	login.EndpointType = "internal" // only the regions of this interface count
	_, err = cinder.Connect(t.Context(), login, http.Client{}, wait)
	if err == nil || strings.Contains(err.Error(), "regions") {
		t.Error(err)
	}
}

// The catalog may name an address that this network does not reach, or several regions.
func TestAnEndpointOfTheLoginIsUsedInsteadOfTheCatalogs(t *testing.T) {
	for _, release := range cindertest.Releases() {
		k, server := keystone(t)
		server.SetRelease(release)
		k.CatalogURL = "http://192.0.2.1:8776/v3/" + cindertest.Project
		c := connect(t, credentials.Login{AuthURL: k.URL + "/v3", Endpoint: server.Endpoint(), Username: "u", Password: "Passw0rd!", Project: "p"})
		if _, err := c.Find(t.Context(), "x"); err != nil || k.Tokens.Load() != 1 {
			t.Errorf("Cinder %d: %d tokens, %v", release, k.Tokens.Load(), err)
		}
	}
}
