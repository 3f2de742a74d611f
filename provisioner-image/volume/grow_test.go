package volume_test

import (
	"slices"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

func TestGrowReturnsTheSize(t *testing.T) {
	s := newStorage()
	id := s.add(volume.Occupied, ownedBy(uid))
	keeper, _ := s.keeper()
	for gib, want := range map[int]int{1: 1, 3: 3} {
		s.volumes[id] = volume.Volume{ID: id, SizeGiB: 1, Metadata: ownedBy(uid)}
		grown, err := keeper.Grow(t.Context(), volume.Growth{Named: volume.Named{UID: uid, ID: id}, SizeGiB: gib})
		if err != nil || grown.SizeGiB != want {
			t.Errorf("%+v, %v", grown, err)
		}
	}
}

func TestGrowRefusesAnotherClaimsVolume(t *testing.T) {
	s := newStorage()
	id := s.add(volume.Free, ownedBy("other"))
	keeper, _ := s.keeper()
	if _, err := keeper.Grow(t.Context(), volume.Growth{Named: volume.Named{UID: uid, ID: id}, SizeGiB: 3}); !volume.Is(err, volume.Misconfigured) {
		t.Error(err)
	}
	if slices.Contains(s.calls, "Resize") {
		t.Errorf("calls %v", s.calls)
	}
	if _, err := keeper.Grow(t.Context(), volume.Growth{Named: volume.Named{UID: uid, ID: "x"}}); !volume.Is(err, volume.Gone) {
		t.Error(err)
	}
}
