package cinder_test

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Cinder answers 400, which else means that the class is wrong.
func TestCloneOfAReservedVolumeIsRefusedWithTheRemedy(t *testing.T) {
	keeper, server := start(t)
	from := server.Add("available", owned("source"))
	s := wanted
	s.Source = volume.Source{VolumeID: from, UID: "source"}
	for _, status := range []string{"attaching", "reserved"} {
		server.SetStatus(from, status)
		_, _, err := keeper.Ensure(t.Context(), s)
		if !volume.Is(err, volume.Unsuitable) || !strings.Contains(err.Error(), "a newer image has provisioned") || len(server.Volumes()) != 1 {
			t.Errorf("%s: %v, left %s", status, err, ids(server))
		}
	}
	server.SetStatus(from, "maintenance")
	if _, _, err := keeper.Ensure(t.Context(), s); err == nil || volume.Is(err, volume.Unsuitable) {
		t.Errorf("another refusal: %v", err)
	}
}
