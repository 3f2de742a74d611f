package cinder

import (
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Place returns which Cinder answers, and for which project. The URL is without the project, which not every login has
// in it.
func (b *Backend) Place() volume.Place {
	api := b.cinder.api
	place := volume.Place{Endpoint: strings.TrimSuffix(api.Endpoint, "/")}
	token, ok := api.GetAuthResult().(tokens.CreateResult)
	if !ok { // without keystone: user:project
		_, place.Project, _ = strings.Cut(api.Token(), ":")
	} else if project, err := token.ExtractProject(); err == nil && project != nil {
		place.Project = project.ID
	}
	if ok {
		place.Region = regionOf(token, place.Endpoint)
	}
	if place.Project != "" {
		place.Endpoint = strings.TrimSuffix(place.Endpoint, "/"+place.Project)
	}
	return place
}

// regionOf returns the region of an endpoint by keystone's catalog: the login need not name one.
func regionOf(token tokens.CreateResult, endpoint string) string {
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
