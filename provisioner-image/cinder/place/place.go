package place

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
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

// types are the types that catalogs give the service of Cinder's third version, the official one
// first (openstack/service-types-authority). "volumev2" is none of them.
var types = []string{"block-storage", "volumev3", "volume", "block-store"}

// version matches the version of the API in the path of an endpoint.
var version = regexp.MustCompile(`/(v[0-9][0-9.]*)/`)

// VersionIn returns the version of the API that the path of an endpoint names, such as "v3", or "".
func VersionIn(path string) string {
	if found := version.FindStringSubmatch(path + "/"); found != nil {
		return found[1]
	}
	return ""
}

// Endpoint is where keystone's catalog has Cinder.
type Endpoint struct{ URL, Region string }

// Endpoints returns the addresses of Cinder in the catalog that keystone has sent, in all regions or in
// one. An address without a version is one of the third: every supported Cinder has it. Cinder is not
// asked for its versions, as V3Endpoint in gophercloud's openstack/endpoint.go does: a Cinder that was
// down during the login was once taken for a catalog without one
// (TestCinderThatIsDownAtTheLoginIsNoFaultOfTheCatalog), and a proxy need not pass that request.
func Endpoints(provider *gophercloud.ProviderClient, region string, to gophercloud.Availability) []Endpoint {
	token, ok := provider.GetAuthResult().(loggedIn)
	if !ok {
		return nil
	}
	catalog, err := token.ExtractServiceCatalog()
	if err != nil {
		return nil
	}
	var found []Endpoint
	for _, entry := range catalog.Entries {
		if !slices.Contains(types, entry.Type) {
			continue
		}
		for _, e := range entry.Endpoints {
			if gophercloud.Availability(e.Interface) == to && isIn(e, region) && isThird(e.URL) {
				found = append(found, Endpoint{e.URL, cmp.Or(e.RegionID, e.Region)})
			}
		}
	}
	return found
}

// isIn reports whether an endpoint is in a region, which need not be named.
func isIn(e tokens.Endpoint, region string) bool {
	return region == "" || e.Region == region || e.RegionID == region
}

// isThird reports whether an address is one of the third version of the API, as far as it says that.
func isThird(address string) bool {
	at, err := url.Parse(address)
	if err != nil || address == "" {
		return false
	}
	named := VersionIn(at.Path)
	return named == "" || named == "v3" || strings.HasPrefix(named, "v3.")
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
