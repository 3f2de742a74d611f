package cinder

import (
	"context"
	"regexp"

	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumetypes"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/failure"
)

// idForm matches an ID, in the two ways in which Cinder accepts one.
var idForm = regexp.MustCompile(`^[[:xdigit:]]{8}(-?[[:xdigit:]]{4}){3}-?[[:xdigit:]]{12}$`)

// TypeName returns the name of a volume type. A class may give its ID, while a volume names its
// type.
func (b *Backend) TypeName(ctx context.Context, nameOrID string) (string, error) {
	if !idForm.MatchString(nameOrID) {
		return nameOrID, nil
	}
	t, err := volumetypes.Get(ctx, b.cinder.api, nameOrID).Extract()
	if err != nil {
		return "", failure.Of(err, "get volume type "+nameOrID, nil)
	}
	return t.Name, nil
}
