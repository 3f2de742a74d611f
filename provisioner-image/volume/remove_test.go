package volume_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Nothing says of another volume with the claim's UID that a run made it.
func TestRemoveDeletesOnlyTheVolumeOfThePV(t *testing.T) {
	s := newStorage()
	s.add(volume.Occupied, s.madeAt(0))
	s.add(volume.Failed, ownedBy(uid))
	s.add(volume.Free, ownedBy("other"))
	recorded := s.add(volume.Free, ownedBy(uid))
	keeper, _ := s.keeper()
	for range 2 {
		left, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: recorded, Noted: true, Name: "pvc-" + uid})
		if err != nil || len(left) != 2 {
			t.Fatalf("left %+v, %v", left, err)
		}
	}
	wantLeft(t, s, "v1:0 v2:2 v3:1")
}

// A list may name any volume for a claim. Only one that carries the claim's UID is removed, and no
// other that does.
func TestADeleteOfAnAuditRemovesTheListedVolumeAlone(t *testing.T) {
	s := newStorage()
	listed := s.add(volume.Free, s.madeAt(0))
	second := s.add(volume.Free, s.madeAt(time.Second))
	other := s.add(volume.Free, ownedBy("other"))
	keeper, _ := s.keeper()
	for _, id := range []string{other, listed} {
		what := undo()
		what.Only = id
		if left, err := keeper.Remove(t.Context(), what); err != nil || len(left) == 0 || left[len(left)-1].Why != "the audit has found volume "+id {
			t.Errorf("%s: left %+v, %v", id, left, err)
		}
	}
	wantLeft(t, s, second+":1 "+other+":1")
}

func TestADeleteOfAnAuditFailsForAVolumeThatIsNotToBeRemoved(t *testing.T) {
	s := newStorage()
	own := s.add(volume.Free, s.madeAt(0))
	restored := s.restore(own, time.Hour)
	delete(s.volumes, own)
	keeper, _ := s.keeper()
	what := undo()
	what.Only = restored
	if _, err := keeper.Remove(t.Context(), what); !volume.Is(err, volume.Misconfigured) || !strings.Contains(err.Error(), "restored backup") {
		t.Error(err)
	}
	wantLeft(t, s, restored+":1")
}

// The recorded export is the recorded volume's. No other volume's export would be found by it.
func TestRemoveUsesTheRecordedExportForTheRecordedVolumeOnly(t *testing.T) {
	s := newStorage()
	spare := s.add(volume.Free, s.madeAt(0))
	recorded := s.add(volume.Occupied, s.madeAt(time.Second))
	keeper, _ := s.keeper()
	what := undo()
	what.ID, what.Access = recorded, volume.Access{ID: "/export"}
	if _, err := keeper.Remove(t.Context(), what); err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"Delete " + spare, "Delete " + recorded + "/export"} {
		if !slices.Contains(s.calls, call) {
			t.Errorf("calls %v, want %q", s.calls, call)
		}
	}
}

func TestRemoveRefusesAnotherClaimsVolume(t *testing.T) {
	s := newStorage()
	other := s.add(volume.Free, ownedBy("other"))
	keeper, _ := s.keeper()
	_, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: other})
	if !volume.Is(err, volume.Misconfigured) || !strings.Contains(err.Error(), `belongs to claim "other"`) {
		t.Error(err)
	}
	wantLeft(t, s, "v1:1")
}

// A PV can name any volume of the storage, and any claim: also the one for which the config's key
// adopt names that volume. What it does not name is not looked at by the claim's name either.
func TestNoVolumeIsTouchedThatDoesNotSayWhoseItIs(t *testing.T) {
	for _, metadata := range []map[string]string{nil, {}, {"name": "pvc-" + uid}, {volume.KeyUID: ""}, {volume.KeyCluster: "ours"}} {
		s := newStorage()
		unmarked := s.add(volume.Occupied, metadata)
		keeper, _ := s.keeper()
		_, removed := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: unmarked, Noted: true, Name: "pvc-" + uid, Adopt: unmarked})
		what := volume.Named{UID: uid, ID: unmarked}
		_, grown := keeper.Grow(t.Context(), volume.Growth{Named: what, SizeGiB: 3})
		_, reached := keeper.Reach(t.Context(), what)
		for doing, err := range map[string]error{"removed": removed, "grown": grown, "reached": reached} {
			var cause *volume.UnmarkedError
			if !volume.Is(err, volume.Misconfigured) || !errors.As(err, &cause) || *cause != (volume.UnmarkedError{UID: uid, ID: unmarked}) {
				t.Errorf("%v: %s: %v", metadata, doing, err)
			}
		}
		for _, call := range s.calls {
			if call != "List" && call != "Get" {
				t.Errorf("%v: calls %v", metadata, s.calls)
			}
		}
	}
}

// Only an administrator writes the metadata of a volume that no run has made.
func TestVolumeIsTouchedOnceAnAdministratorHasConfirmedIt(t *testing.T) {
	s := newStorage()
	what := volume.Named{UID: uid, ID: s.add(volume.Free, nil)}
	s.edit(what.ID, func(v *volume.Volume) { v.Metadata = ownedBy(uid) })
	keeper, _ := s.keeper()
	if grown, err := keeper.Grow(t.Context(), volume.Growth{Named: what, SizeGiB: 3}); err != nil || grown.SizeGiB != 3 {
		t.Errorf("%+v, %v", grown, err)
	}
	if _, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: what.ID, Noted: true}); err != nil {
		t.Error(err)
	}
	wantLeft(t, s, "")
}

// A volume that cannot be removed does not keep the others.
func TestRemoveGoesOnAfterAFailure(t *testing.T) {
	s := newStorage()
	s.add(volume.Occupied, s.madeAt(0))
	s.add(volume.Free, s.madeAt(time.Second))
	s.before = func(method string) error {
		if method == "Delete v1" {
			return &volume.Error{Kind: volume.Busy, Doing: method}
		}
		return nil
	}
	keeper, _ := s.keeper()
	if _, err := keeper.Remove(t.Context(), undo()); !volume.Is(err, volume.Busy) {
		t.Error(err)
	}
	wantLeft(t, s, "v1:0")
}

func TestDiscardRemovesOneVolumeAndCanBeRepeated(t *testing.T) {
	s := newStorage()
	kept := s.add(volume.Free, ownedBy(uid))
	lost := s.add(volume.Free, ownedBy(uid))
	keeper, _ := s.keeper()
	for range 2 {
		if err := keeper.Discard(t.Context(), volume.Volume{ID: lost}, volume.Access{}); err != nil {
			t.Fatal(err)
		}
	}
	wantLeft(t, s, kept+":1")
}

// Another client may have deleted the volume in the meantime.
func TestRemoveAcceptsThatAVolumeVanishes(t *testing.T) {
	s := newStorage()
	id := s.add(volume.Free, ownedBy(uid))
	s.before = func(method string) error {
		if strings.HasPrefix(method, "Delete") {
			delete(s.volumes, id)
		}
		return nil
	}
	keeper, _ := s.keeper()
	if _, err := keeper.Remove(t.Context(), undo()); err != nil {
		t.Error(err)
	}
}
