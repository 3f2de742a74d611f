package volume_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

const clusterUID = "c1"

// ahead returns a Keeper that has listed the volumes of the cluster, for a batch that creates or
// removes volumes, and forgets the call.
func (s *storage) ahead(t *testing.T, creates bool) *volume.Keeper {
	t.Helper()
	k, _ := s.keeper()
	k, err := k.Ahead(t.Context(), clusterUID, creates)
	if err != nil {
		t.Fatal(err)
	}
	s.calls = nil
	return k
}

// claimSpec returns what the i-th claim of a batch wants.
func claimSpec(i int) volume.Spec {
	of := fmt.Sprintf("claim-%d", i)
	return volume.Spec{UID: of, Name: of, ClusterUID: clusterUID, SizeGiB: 1, Metadata: ownedBy(of)}
}

func TestAListAheadServesManyClaims(t *testing.T) {
	s := newStorage()
	k := s.ahead(t, true)
	for i := range 3 {
		v, left, err := k.Ensure(t.Context(), claimSpec(i))
		if err != nil || v.UID() != claimSpec(i).UID || len(left) > 0 {
			t.Errorf("%+v, %v, %v", v, left, err)
		}
	}
	if got := strings.Join(s.calls, " "); got != "Create Ready Create Ready Create Ready" {
		t.Errorf("called %s", got)
	}
	k, s.calls = s.ahead(t, false), nil
	for i := range 3 {
		if _, err := k.Remove(t.Context(), volume.Target{UID: claimSpec(i).UID, Name: claimSpec(i).Name, ClusterUID: clusterUID}); err != nil {
			t.Error(err)
		}
	}
	if len(s.volumes) != 0 || slices.Contains(s.calls, "List") {
		t.Errorf("left %s; called %v", s.left(), s.calls)
	}
}

// The volume may exist although its create seems to have failed, so that it is looked for, and not
// created again.
func TestACreateWithoutAnAnswerIsLookedForAlsoInABatch(t *testing.T) {
	s := newStorage()
	k := s.ahead(t, true)
	s.after = func(method string) error {
		if method == "Create" {
			return &volume.Error{Kind: volume.Unavailable, Err: errors.New("connection lost")}
		}
		return nil
	}
	v, _, err := k.Ensure(t.Context(), claimSpec(1))
	if err != nil || v.ID != "v1" || len(s.volumes) != 1 || !slices.Contains(s.calls, "List") {
		t.Errorf("%+v, %v; %s after %v", v, err, s.left(), s.calls)
	}
}

// What was listed ahead is old once it was used: it does not show what has happened since.
func TestAListAheadIsUsedOnce(t *testing.T) {
	s := newStorage()
	s.volumes[s.add(volume.Free, claimSpec(0).Metadata)].Metadata[volume.KeyClusterUID] = clusterUID
	s.edit("v1", func(v *volume.Volume) { v.Name = claimSpec(0).Name })
	k := s.ahead(t, false)
	target := volume.Target{UID: claimSpec(0).UID, Name: claimSpec(0).Name, ClusterUID: clusterUID}
	for range 2 {
		if _, err := k.Remove(t.Context(), target); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Join(s.calls, " "); got != "Delete v1 List" {
		t.Errorf("called %s", got)
	}
}

// An older image left the cluster's UID out, so that the list does not show its volumes.
func TestARemovalOfABatchFindsAVolumeWithoutTheClustersUID(t *testing.T) {
	s := newStorage()
	s.add(volume.Free, claimSpec(0).Metadata)
	s.edit("v1", func(v *volume.Volume) { v.Name = claimSpec(0).Name })
	target := volume.Target{UID: claimSpec(0).UID, Name: claimSpec(0).Name, ClusterUID: clusterUID}
	if _, err := s.ahead(t, false).Remove(t.Context(), target); err != nil || len(s.volumes) != 0 {
		t.Errorf("left %s, %v after %v", s.left(), err, s.calls)
	}
}

func TestAListAheadThatIsRefusedRefusesTheBatch(t *testing.T) {
	for kind, refused := range map[volume.Kind]bool{volume.Denied: true, volume.Misconfigured: true, volume.Unavailable: false} {
		s := newStorage()
		s.before = func(string) error { return &volume.Error{Kind: kind} }
		k, _ := s.keeper()
		if got, err := k.Ahead(t.Context(), clusterUID, true); volume.Is(err, kind) != refused || (got == k) == refused {
			t.Errorf("kind %d: %v, %v", kind, got, err)
		}
	}
}
