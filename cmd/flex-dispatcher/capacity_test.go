package main

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// The scheduler finds the CSIDriver by the provisioner's name, which may have a slash where a CSIDriver's may not.
func TestCapacityIsPublishedOnlyUnderTheNameOfACSIDriver(t *testing.T) {
	for name, legal := range map[string]bool{
		"flex-provisioner.io": true, "storage.example.com": true,
		"example.com/flex": false, "Example.com": false, strings.Repeat("a", 64): false, strings.Repeat("a", 63): true,
	} {
		for _, publish := range []bool{false, true} {
			s := &settings{}
			s.controller.Workers, s.controller.Provisioner, s.controller.PublishCapacity = 1, name, publish
			if err := s.complete(&rest.Config{}); (err == nil) != (legal || !publish) {
				t.Errorf("%s, published: %t: %v", name, publish, err)
			}
		}
	}
}
