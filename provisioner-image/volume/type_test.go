package volume_test

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// A source is of the class's type also where the class gives the type's ID; the storage says which
// type that is.
func TestTypeOfASourceMayBeGivenByItsID(t *testing.T) {
	for name, tc := range map[string]struct {
		kind   string
		before func(string) error
		want   func(error) bool
	}{
		"its ID":                {"ID of plain", nil, func(err error) bool { return err == nil }},
		"its name":              {"plain", failing("TypeName", volume.Unavailable), func(err error) bool { return err == nil }},
		"the ID of another":     {"ID of fast", nil, func(err error) bool { return volume.Is(err, volume.Unsuitable) }},
		"an ID that is no type": {"ID of none", failing("TypeName", volume.Gone), func(err error) bool { return volume.Is(err, volume.Unsuitable) }},
		"no answer":             {"ID of plain", failing("TypeName", volume.Unavailable), func(err error) bool { return volume.Is(err, volume.Unavailable) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStorage()
			s.volumes["v"] = volume.Volume{ID: "v", SizeGiB: 1, Type: "plain", Metadata: ownedBy("other")}
			s.before = tc.before
			wanted := spec()
			wanted.Type, wanted.Source = tc.kind, volume.Source{VolumeID: "v", UID: "other"}
			keeper, _ := s.keeper()
			if err := keeper.CheckSource(t.Context(), wanted); !tc.want(err) {
				t.Errorf("%v after %s", err, strings.Join(s.calls, " "))
			}
		})
	}
}
