package volume_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

func adoption(id string) volume.Spec {
	s := spec()
	s.Adopt = id
	return s
}

func TestAdoptionKeepsTheMetadataOfTheVolume(t *testing.T) {
	s := newStorage()
	id := s.add(volume.Free, map[string]string{"kept": "yes"})
	keeper, _ := s.keeper()
	for range 2 {
		v, _, err := keeper.Ensure(t.Context(), adoption(id))
		if err != nil || v.ID != id || v.UID() != uid || v.Metadata["kept"] != "yes" {
			t.Errorf("%+v, %v", v, err)
		}
	}
	wantLeft(t, s, "v1:1")
}

func TestAdoptionRefusesWhatCannotBecomeTheClaims(t *testing.T) {
	tests := map[string]struct {
		there func(*storage) string
		edit  func(*volume.Spec)
		said  string
	}{
		"no such volume":  {func(*storage) string { return "x" }, nil, "it does not exist"},
		"another claim's": {func(s *storage) string { return s.add(volume.Free, ownedBy("other")) }, nil, "it belongs to claim other"},
		"another cluster's": {
			func(s *storage) string { return s.add(volume.Free, ofCluster("theirs")) }, func(s *volume.Spec) { s.ClusterUID = "ours" },
			"it belongs to the cluster with the UID theirs; if that cluster no longer uses it, set " + volume.KeyClusterUID,
		},
		"another cluster's, of no claim": {
			func(s *storage) string { return s.add(volume.Free, map[string]string{volume.KeyClusterUID: "theirs"}) },
			func(s *volume.Spec) { s.ClusterUID = "ours" }, "it belongs to the cluster with the UID theirs",
		},
		"in use": {func(s *storage) string { return s.add(volume.Occupied, nil) }, nil, `its status is "state-0", not available`},
		"in use by another client": {
			func(s *storage) string {
				id := s.add(volume.Occupied, nil)
				s.edit(id, func(v *volume.Volume) { v.Users, v.Exports = []string{"server 7"}, []string{"a-1"} })
				return id
			}, nil, `its status is "state-0", not available (server 7, export a-1). Its user must release it first`,
		},
		"in use by the PV of another claim than the retained one": {
			func(s *storage) string { return s.add(volume.Occupied, ownedBy("other")) },
			func(s *volume.Spec) { s.Former = volume.Former{UID: "third"} }, "it belongs to claim other",
		},
		"of a retained PV, and failed": {
			func(s *storage) string { return s.add(volume.Failed, ownedBy("other")) },
			func(s *volume.Spec) { s.Former = volume.Former{UID: "other"} }, `its status is "state-2", not available`,
		},
		"another type": {
			func(s *storage) string { return s.add(volume.Free, nil) }, func(s *volume.Spec) { s.Type = "fast" }, `"plain", and the storage class has "fast"`,
		},
		"too small": {
			func(s *storage) string { return s.add(volume.Free, nil) }, func(s *volume.Spec) { s.SizeGiB = 3 }, "its size is 1 GiB, and the claim requests 3",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStorage()
			wanted := adoption(tc.there(s))
			if tc.edit != nil {
				tc.edit(&wanted)
			}
			keeper, _ := s.keeper()
			v, _, err := keeper.Ensure(t.Context(), wanted)
			if !volume.Is(err, volume.Unsuitable) || !strings.Contains(err.Error(), tc.said) || v.ID != "" {
				t.Errorf("volume %q, %v", v.ID, err)
			}
		})
	}
}

// The volume of a claim that is deleted may still have the export that its PV records. That ends, and
// no other.
func TestAVolumeOfARetainedPVIsAdoptedWithItsExport(t *testing.T) {
	s := newStorage()
	id := s.add(volume.Occupied, ownedBy("other"))
	keeper, _ := s.keeper()
	wanted := adoption(id)
	wanted.Former = volume.Former{UID: "other", Access: volume.Access{ID: "old"}}
	var called []string
	s.before = func(method string) error { called = append(called, method); return nil }
	if v, _, err := keeper.Ensure(t.Context(), wanted); err != nil || v.ID != id || v.UID() != uid || !slices.Contains(called, "Release "+id+"old") {
		t.Errorf("%+v, %v, called %q", v, err, called)
	}
}

// A volume that could not be marked is not the claim's: a rollback must not touch it.
func TestAdoptionThatFailsNamesNoVolume(t *testing.T) {
	s := newStorage()
	id := s.add(volume.Free, nil)
	s.before = failing("Mark", volume.Unavailable)
	keeper, _ := s.keeper()
	if v, _, err := keeper.Ensure(t.Context(), adoption(id)); !volume.Is(err, volume.Unavailable) || v.ID != "" {
		t.Errorf("volume %q, %v", v.ID, err)
	}
}

// An adopted volume holds the user's data, also when the storage says that it failed.
func TestAdoptedVolumeThatFailedIsNotRemoved(t *testing.T) {
	s := newStorage()
	id := s.add(volume.Free, nil)
	keeper, _ := s.keeper()
	v, _, err := keeper.Ensure(t.Context(), adoption(id))
	if err != nil {
		t.Fatal(err)
	}
	v.State = volume.Failed
	s.volumes[id] = v
	if v, _, err = keeper.Ensure(t.Context(), adoption(id)); err != nil || v.ID != id {
		t.Errorf("volume %q, %v", v.ID, err)
	}
}

func TestUndoReleasesAnAdoptedVolume(t *testing.T) {
	s := newStorage()
	id := s.add(volume.Free, map[string]string{"kept": "yes"})
	keeper, _ := s.keeper()
	adopting := adoption(id)
	maps.Copy(adopting.Metadata, map[string]string{"flex-provisioner.io/claim-name": "data", "flex-provisioner.io/cluster": "example"})
	if _, _, err := keeper.Ensure(t.Context(), adopting); err != nil {
		t.Fatal(err)
	}
	target := volume.Target{UID: uid, ID: id, Adopt: id, Undo: true}
	for range 2 {
		if _, err := keeper.Remove(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		target.ID = ""
	}
	if v := s.volumes[id]; v.UID() != "" || v.Metadata["kept"] != "yes" || len(v.Metadata) != 1 {
		t.Errorf("given back as %+v", v)
	}
}

func TestRemoveDeletesAnAdoptedVolumeThatHadAPV(t *testing.T) {
	s := newStorage()
	id := s.add(volume.Free, nil)
	keeper, _ := s.keeper()
	if _, _, err := keeper.Ensure(t.Context(), adoption(id)); err != nil {
		t.Fatal(err)
	}
	if _, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: id}); err != nil {
		t.Error(err)
	}
	wantLeft(t, s, "")
}

// A restored backup has the metadata of its original, whose claim may be long gone.
func TestARestoredBackupOfAnotherClaimIsAdopted(t *testing.T) {
	s := newStorage()
	own := s.add(volume.Free, s.madeAt(0))
	s.edit(own, func(v *volume.Volume) { v.Metadata[volume.KeyUID] = "other" })
	theirs := s.restore(own, time.Hour)
	s.edit(theirs, func(v *volume.Volume) { v.Metadata[volume.KeyClusterUID] = "theirs" })
	later, soon := s.restore(own, time.Hour), s.restore(own, time.Minute)
	keeper, _ := s.keeper()
	wanted := adoption(later)
	if v, _, err := keeper.Ensure(t.Context(), wanted); err != nil || v.ID != later || v.UID() != uid {
		t.Errorf("a copy that shows: %+v, %v", v, err)
	}
	wanted = adoption(soon)
	wanted.UID, wanted.Metadata = "third", ownedBy("third")
	if _, _, err := keeper.Ensure(t.Context(), wanted); err == nil || !strings.Contains(err.Error(), "set "+volume.KeyUID+" in its metadata to an empty value") {
		t.Errorf("a copy that does not show: %v", err)
	}
	wanted.CopyOf = "other"
	if v, _, err := keeper.Ensure(t.Context(), wanted); err != nil || v.ID != soon || v.UID() != "third" {
		t.Errorf("a copy of a volume that has a PV: %+v, %v", v, err)
	}
	wanted = adoption(theirs)
	wanted.UID, wanted.Metadata, wanted.ClusterUID = "fourth", ownedBy("fourth"), "ours"
	if v, _, err := keeper.Ensure(t.Context(), wanted); err != nil || v.ID != theirs || v.Metadata[volume.KeyClusterUID] != "ours" {
		t.Errorf("a copy of another cluster's volume: %+v, %v", v, err)
	}
}
