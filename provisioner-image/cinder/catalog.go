package cinder

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/place"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// catalogued returns the address of Cinder in keystone's catalog. If Cinder is in several regions the
// login must name one. Gophercloud would use the first of the catalog (V3Endpoint in its
// openstack/endpoint.go), and volumes would be created in a region that the administrator has not
// selected.
func catalogued(provider *gophercloud.ProviderClient, login credentials.Login) (string, error) {
	found := place.Endpoints(provider, login.Region, cmp.Or(gophercloud.Availability(login.EndpointType), gophercloud.AvailabilityPublic))
	var regions []string
	for _, e := range found {
		regions = append(regions, e.Region)
	}
	slices.Sort(regions)
	regions = slices.Compact(regions)
	var said string
	switch {
	case len(found) == 0:
		said = fmt.Sprintf("keystone lists no block-storage endpoint for region %q and endpoint type %q", login.Region, login.EndpointType)
	case len(regions) > 1 && login.Region == "":
		said = fmt.Sprintf("Cinder is in the regions %s, and the login names none of them: name one (region, region_name, OS_REGION_NAME)", strings.Join(regions, ", "))
	default:
		return gophercloud.NormalizeURL(found[0].URL), nil
	}
	return "", &volume.Error{Kind: volume.Misconfigured, Doing: "find Cinder in keystone's catalog", Said: said}
}
