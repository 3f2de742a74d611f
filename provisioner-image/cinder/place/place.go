package place

import (
	"net/url"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Of returns which Cinder answers, and for which project. The URL is without the project, which not
// every login has in it, and without a user, whose password may be in it.
func Of(api *gophercloud.ServiceClient) volume.Place {
	place := volume.Place{Endpoint: withoutUser(strings.TrimSuffix(api.Endpoint, "/"))}
	if token, ok := api.GetAuthResult().(loggedIn); ok {
		place.Project, place.Region = Project(api.ProviderClient), regionOf(token, place.Endpoint)
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

// loggedIn is what keystone has answered to a login, or about a token that was given.
type loggedIn interface {
	ExtractProject() (*tokens.Project, error)
	ExtractServiceCatalog() (*tokens.ServiceCatalog, error)
}

// Project returns the ID of the token's project, or "" if the token has none.
func Project(provider *gophercloud.ProviderClient) string {
	token, ok := provider.GetAuthResult().(loggedIn)
	if !ok {
		return ""
	}
	project, err := token.ExtractProject()
	if err != nil || project == nil {
		return ""
	}
	return project.ID
}
