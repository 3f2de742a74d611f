package place

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/gophercloud/gophercloud/v2"
)

// cinders are the types that a catalog may give to Cinder's present API (ServiceTypeAliases in
// gophercloud's endpoint_search.go, without volumev2).
var cinders = []string{"block-storage", "block-store", "volume", "volumev3"}

// olderAPI matches the addresses of the APIs before the present one.
var olderAPI = regexp.MustCompile(`/v[12](\.[0-9]+)?(/|$)`)

// Regions lists the regions in which keystone's catalog has Cinder, for one interface.
func Regions(provider *gophercloud.ProviderClient, of gophercloud.Availability) []string {
	token, ok := provider.GetAuthResult().(loggedIn)
	if !ok {
		return nil
	}
	catalog, err := token.ExtractServiceCatalog()
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range catalog.Entries {
		for _, e := range entry.Endpoints {
			if slices.Contains(cinders, entry.Type) && e.Interface == string(of) && !olderAPI.MatchString(e.URL) {
				names = append(names, cmp.Or(e.RegionID, e.Region))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
