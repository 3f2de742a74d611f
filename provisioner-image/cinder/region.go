package cinder

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/place"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// checkRegion returns an error if the login names no region, and Cinder is in several. Gophercloud
// would use the first of the catalog (V3Endpoint in its openstack/endpoint.go), and volumes would be
// created in a region that the administrator has not selected.
func checkRegion(provider *gophercloud.ProviderClient, login credentials.Login) error {
	if login.Region != "" {
		return nil
	}
	regions := place.Regions(provider, cmp.Or(gophercloud.Availability(login.EndpointType), gophercloud.AvailabilityPublic))
	if len(regions) < 2 {
		return nil
	}
	return &volume.Error{
		Kind:  volume.Misconfigured,
		Doing: "find Cinder in keystone's catalog",
		Said: fmt.Sprintf("Cinder is in the regions %s, and the login names none of them: name one (region, region_name, OS_REGION_NAME)",
			strings.Join(regions, ", ")),
	}
}
