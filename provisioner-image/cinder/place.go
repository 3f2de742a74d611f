package cinder

import (
	"net/url"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Place returns which Cinder answers, and for which project. The URL is without the project, which not every login has
// in it, and without a user, whose password may be in it.
func (b *Backend) Place() volume.Place {
	api := b.cinder.api
	place := volume.Place{Endpoint: withoutUser(strings.TrimSuffix(api.Endpoint, "/"))}
	if token, ok := api.GetAuthResult().(loggedIn); ok {
		place.Project, place.Region = projectOf(api.ProviderClient), regionOf(token, place.Endpoint)
	} else if api.GetAuthResult() == nil { // without keystone: user:project
		_, place.Project, _ = strings.Cut(api.Token(), ":")
	}
	if place.Project != "" {
		place.Endpoint = strings.TrimSuffix(place.Endpoint, "/"+place.Project)
	}
	return place
}

func withoutUser(endpoint string) string {
	if at, err := url.Parse(endpoint); err == nil && at.User != nil {
		at.User = nil
		return at.String()
	}
	return endpoint
}

// regionOf returns the region of an endpoint by keystone's catalog: the login need not name one.
func regionOf(token loggedIn, endpoint string) string {
	catalog, err := token.ExtractServiceCatalog()
	if err != nil {
		return ""
	}
	for _, entry := range catalog.Entries {
		for _, e := range entry.Endpoints {
			if url := strings.TrimSuffix(e.URL, "/"); url != "" && strings.HasPrefix(endpoint+"/", url+"/") {
				return e.Region
			}
		}
	}
	return ""
}
