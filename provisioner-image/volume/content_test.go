package volume_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// contents are claims that ask for content of every kind.
func contents() map[string]func(*volume.Spec) {
	return map[string]func(*volume.Spec){
		"an empty volume":          func(*volume.Spec) {},
		"a clone of a":             func(s *volume.Spec) { s.Source = volume.Source{VolumeID: "a", UID: "the claim of a"} },
		"a clone of b":             func(s *volume.Spec) { s.Source = volume.Source{VolumeID: "b", UID: "the claim of b"} },
		"a clone of snapshot":      func(s *volume.Spec) { s.Source.SnapshotID = "snapshot" },
		"key adopt assigns volume": func(s *volume.Spec) { s.Adopt = "v1" },
	}
}

// A claim that changes what it asks for gets what it asks for, or nothing: never what an earlier
// run made for the earlier request.
func TestVolumeOfOtherContentIsNeitherUsedNorRemoved(t *testing.T) {
	for before, first := range contents() {
		for after, ask := range contents() {
			if before == "key adopt assigns volume" || before == after {
				continue
			}
			t.Run(after+" after "+before, func(t *testing.T) {
				s := newStorage()
				s.add(volume.Free, nil) // the one to adopt
				earlier, now := spec(), spec()
				first(&earlier)
				ask(&now)
				keeper, _ := s.keeper()
				if v, _, err := keeper.Ensure(t.Context(), earlier); err != nil || v.ID != "v2" {
					t.Fatalf("using %q, %v", v.ID, err)
				}
				s.calls = nil
				v, _, err := keeper.Ensure(t.Context(), now)
				if !volume.Is(err, volume.Unsuitable) || v.ID != "" {
					t.Fatalf("using %q, %v", v.ID, err)
				}
				for _, part := range []string{"use volume v2", before, after, "Remedy: delete the claim"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q does not say %q", err, part)
					}
				}
				if !slices.Equal(s.calls, []string{"List"}) {
					t.Errorf("calls %v", s.calls)
				}
				wantLeft(t, s, "v1:1 v2:1")
			})
		}
	}
}

func TestVolumeOfTheSameContentIsUsed(t *testing.T) {
	for what, ask := range contents() {
		t.Run(what, func(t *testing.T) {
			s := newStorage()
			s.add(volume.Free, nil)
			s.edit("v1", func(v *volume.Volume) { v.Origin = "an old one" }) // an adopted volume may be a clone itself
			asked := spec()
			ask(&asked)
			keeper, _ := s.keeper()
			first, _, err := keeper.Ensure(t.Context(), asked)
			if err != nil {
				t.Fatal(err)
			}
			if again, _, err := keeper.Ensure(t.Context(), asked); err != nil || again.ID != first.ID {
				t.Errorf("using %q after %q, %v", again.ID, first.ID, err)
			}
		})
	}
}

// A config may adopt the volume that a run made for the claim.
func TestVolumeOfTheClaimCanBeAdoptedWhateverItsContent(t *testing.T) {
	s := newStorage()
	id := s.add(volume.Free, s.madeAt(0))
	s.edit(id, func(v *volume.Volume) { v.Origin = "a" })
	keeper, _ := s.keeper()
	if v, _, err := keeper.Ensure(t.Context(), adoption(id)); err != nil || v.ID != id {
		t.Errorf("using %q, %v", v.ID, err)
	}
}

// The older volume is of a run that overlaps, and of an earlier request. Both volumes stay for the
// undo: the other run may be about to create its PV.
func TestVolumeOfOtherContentIsNeitherUsedNorRemovedAfterACreate(t *testing.T) {
	s := newStorage()
	s.before = func(method string) error {
		if method == "Create" {
			s.add(volume.Free, s.madeAt(0))
		}
		return nil
	}
	asked := spec()
	asked.Source.SnapshotID = "snapshot"
	asked.Asked = s.start.Add(time.Second)
	keeper, _ := s.keeper()
	if v, _, err := keeper.Ensure(t.Context(), asked); !volume.Is(err, volume.Unsuitable) || v.ID != "" {
		t.Errorf("using %q, %v", v.ID, err)
	}
	wantLeft(t, s, "v1:1 v2:1")
}
