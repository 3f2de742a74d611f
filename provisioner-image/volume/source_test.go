package volume_test

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

func TestCheckSource(t *testing.T) {
	tests := map[string]struct {
		there volume.Volume
		edit  func(*volume.Spec)
		said  string
	}{
		"a good one":      {volume.Volume{ID: "v", SizeGiB: 1, Type: "plain", Metadata: ownedBy("other")}, nil, ""},
		"nothing to copy": {volume.Volume{}, func(s *volume.Spec) { s.Source = volume.Source{} }, ""},
		"no such volume":  {volume.Volume{}, nil, "is not in this storage"},
		"another claim's": {volume.Volume{ID: "v", Metadata: ownedBy("third")}, nil, "does not belong to the source claim"},
		"failed":          {volume.Volume{ID: "v", State: volume.Failed, Status: "bad", Metadata: ownedBy("other")}, nil, `in status "bad"`},
		"another type":    {volume.Volume{ID: "v", Type: "fast", Metadata: ownedBy("other")}, nil, `"fast", and the storage class has "plain"`},
		"larger":          {volume.Volume{ID: "v", SizeGiB: 9, Type: "plain", Metadata: ownedBy("other")}, nil, "has 9 GiB, and the claim requests 1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStorage()
			if tc.there.ID != "" {
				s.volumes["v"] = tc.there
			}
			wanted := spec()
			wanted.Source = volume.Source{VolumeID: "v", UID: "other"}
			if tc.edit != nil {
				tc.edit(&wanted)
			}
			keeper, _ := s.keeper()
			err := keeper.CheckSource(t.Context(), wanted)
			if tc.said == "" && err != nil || tc.said != "" && (!volume.Is(err, volume.Unsuitable) || !strings.Contains(err.Error(), tc.said)) {
				t.Errorf("%v, want %q", err, tc.said)
			}
		})
	}
}

// A storage that does not answer says nothing about the source.
func TestCheckSourcePassesAFailureOn(t *testing.T) {
	s := newStorage()
	s.before = failing("Get", volume.Unavailable)
	wanted := spec()
	wanted.Source = volume.Source{VolumeID: "v", UID: "other"}
	keeper, _ := s.keeper()
	if err := keeper.CheckSource(t.Context(), wanted); !volume.Is(err, volume.Unavailable) {
		t.Error(err)
	}
}
