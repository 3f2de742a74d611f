package volume_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// restore makes what Cinder makes from a backup: a volume with the name and the metadata of the
// original.
func (s *storage) restore(id string, after time.Duration) string {
	of := s.volumes[id]
	made := s.add(volume.Free, maps.Clone(of.Metadata))
	s.edit(made, func(v *volume.Volume) { v.Name, v.Created = of.Name, of.Created.Add(after) })
	return made
}

func wantLeftAlone(t *testing.T, left []volume.Left, id, why string) {
	t.Helper()
	if len(left) != 1 || left[0].ID != id || !strings.Contains(left[0].Why, why) {
		t.Errorf("left alone: %+v, want %s with %q", left, id, why)
	}
}

func TestRestoredBackupSurvivesTheDeletionOfItsClaim(t *testing.T) {
	s := newStorage()
	own := s.add(volume.Occupied, ownedBy(uid))
	restored := s.restore(own, time.Minute)
	keeper, _ := s.keeper()
	for range 2 {
		left, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: own, Noted: true, Name: "pvc-" + uid})
		if err != nil {
			t.Fatal(err)
		}
		wantLeftAlone(t, left, restored, "names another volume, "+own)
	}
	wantLeft(t, s, restored+":1")
}

// undo returns what an undo knows.
func undo() volume.Target { return volume.Target{UID: uid, Name: "pvc-" + uid, Undo: true} }

func TestUndoRemovesOnlyWhatARunMade(t *testing.T) {
	tests := map[string]struct {
		setup func(*storage) (stays string)
		why   string
	}{
		"a copy beside the original": {func(s *storage) string {
			return s.restore(s.add(volume.Free, s.madeAt(0)), time.Minute)
		}, "an older volume has the same marks"},
		"a copy of an unmarked volume": {func(s *storage) string {
			return s.restore(s.add(volume.Free, ownedBy(uid)), time.Minute)
		}, "an older volume has the same marks"},
		"a copy whose original is gone": {func(s *storage) string {
			own := s.add(volume.Free, s.madeAt(0))
			id := s.restore(own, time.Hour)
			delete(s.volumes, own)
			return id
		}, "such as a restored backup"},
		"a copy whose original is being deleted": {func(s *storage) string {
			return s.restore(s.add(volume.Deleting, s.madeAt(0)), time.Minute)
		}, "an older volume has the same marks"},
		"another name": {func(s *storage) string {
			id := s.add(volume.Free, s.madeAt(0))
			s.edit(id, func(v *volume.Volume) { v.Name = "mine" })
			return id
		}, `its name is not "pvc-` + uid},
		"in use by others": {func(s *storage) string {
			id := s.add(volume.Occupied, s.madeAt(0))
			s.edit(id, func(v *volume.Volume) { v.Users = []string{"host ours", "server 1"} })
			return id
		}, "in use by server 1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStorage()
			stays := tc.setup(s)
			keeper, _ := s.keeper()
			what := undo()
			what.Access.Client.Host = "ours"
			left, err := keeper.Remove(t.Context(), what)
			if err != nil {
				t.Fatal(err)
			}
			wantLeftAlone(t, left, stays, tc.why)
			if len(s.volumes) != 1 || s.volumes[stays].ID != stays {
				t.Errorf("left %q", s.left())
			}
		})
	}
}

// Runs that overlapped have each made a volume, at a time of its own.
func TestUndoRemovesTheVolumesOfOverlappingRuns(t *testing.T) {
	s := newStorage()
	s.add(volume.Free, s.madeAt(0))
	s.add(volume.Failed, s.madeAt(time.Second))
	s.add(volume.Deleting, s.madeAt(2*time.Second))
	s.add(volume.Free, ownedBy("other"))
	keeper, _ := s.keeper()
	if left, err := keeper.Remove(t.Context(), undo()); err != nil || len(left) != 0 {
		t.Errorf("%+v, %v", left, err)
	}
	wantLeft(t, s, "v4:1")
}

// A PV whose record was lost is older than a copy of its volume.
func TestRemoveWithoutARecordLeavesWhatIsYoungerThanThePV(t *testing.T) {
	s := newStorage()
	id := s.add(volume.Free, ownedBy(uid))
	keeper, _ := s.keeper()
	what := volume.Target{UID: uid, Name: "pvc-" + uid, Before: s.start.Add(-time.Hour)}
	left, err := keeper.Remove(t.Context(), what)
	if err != nil {
		t.Fatal(err)
	}
	wantLeftAlone(t, left, id, "younger than the PersistentVolume")
	what.Before = s.start
	if left, err = keeper.Remove(t.Context(), what); err != nil || len(left) != 0 {
		t.Errorf("%+v, %v", left, err)
	}
	wantLeft(t, s, "")
}

func TestARerunKeepsARestoredBackup(t *testing.T) {
	for _, state := range []volume.State{volume.Free, volume.Failed} {
		s := newStorage()
		own := s.add(volume.Free, s.madeAt(0))
		restored := s.restore(own, time.Minute)
		s.edit(restored, func(v *volume.Volume) { v.State = state })
		keeper, _ := s.keeper()
		v, left, err := keeper.Ensure(t.Context(), spec())
		if err != nil || v.ID != own {
			t.Errorf("using %q, %v", v.ID, err)
		}
		wantLeftAlone(t, left, restored, "may be a copy")
		if len(s.volumes) != 2 {
			t.Errorf("left %q", s.left())
		}
	}
}

// The clock of the storage differs from the run's: what it made is no copy for all that.
func TestAVolumeIsRecognizedWhateverTheStoragesClockSays(t *testing.T) {
	for _, lost := range []bool{false, true} {
		s := newStorage()
		s.start = s.start.Add(-5 * time.Hour)
		if lost {
			s.after = failing("Create", volume.Unavailable)
		}
		keeper, _ := s.keeper()
		for range 2 {
			v, left, err := keeper.Ensure(t.Context(), spec())
			if err != nil || v.ID != "v1" || len(left) != 0 {
				t.Errorf("using %q, left %+v, %v", v.ID, left, err)
			}
		}
		if left, err := keeper.Remove(t.Context(), undo()); err != nil || len(left) != 0 {
			t.Errorf("%+v, %v", left, err)
		}
		wantLeft(t, s, "")
	}
}

func ofCluster(cluster string) map[string]string {
	m := ownedBy(uid)
	m["flex-provisioner.io/cluster-uid"] = cluster
	return m
}

// A cluster that was restored from a backup of another has its claims, with their UIDs.
func TestVolumesOfAnotherClusterAreNeverTouched(t *testing.T) {
	s := newStorage()
	theirs := s.add(volume.Failed, ofCluster("theirs"))
	keeper, _ := s.keeper()
	wanted := spec()
	wanted.ClusterUID = "ours"
	v, left, err := keeper.Ensure(t.Context(), wanted)
	if err != nil || v.ID == theirs || v.Metadata["flex-provisioner.io/cluster-uid"] != "ours" {
		t.Errorf("%+v, %v", v, err)
	}
	wantLeftAlone(t, left, theirs, "cluster with the UID theirs")
	what := undo()
	what.ClusterUID = "ours"
	if left, err = keeper.Remove(t.Context(), what); err != nil {
		t.Error(err)
	}
	wantLeftAlone(t, left, theirs, "cluster with the UID theirs")
	wantLeft(t, s, theirs+":2")

	what.ID, what.Noted = theirs, true
	_, err = keeper.Remove(t.Context(), what)
	_, growErr := keeper.Grow(t.Context(), volume.Growth{Named: volume.Named{UID: uid, ID: theirs, ClusterUID: "ours"}, SizeGiB: 9})
	for _, err := range []error{err, growErr} {
		if !volume.Is(err, volume.Misconfigured) || !strings.Contains(err.Error(), "the cluster with the UID theirs, not to ours") {
			t.Errorf("noted on the PV: %v", err)
		}
	}
	wantLeft(t, s, theirs+":2")
}

// An older image did not mark the cluster, and an older dispatcher does not say which it is.
func TestVolumesWithoutAClusterAreOurs(t *testing.T) {
	for marked, cluster := range map[string]string{"": "ours", "theirs": ""} {
		s := newStorage()
		s.add(volume.Free, ofCluster(marked))
		keeper, _ := s.keeper()
		what := undo()
		what.ClusterUID = cluster
		if left, err := keeper.Remove(t.Context(), what); err != nil || len(left) != 0 {
			t.Errorf("left %+v, %v", left, err)
		}
		wantLeft(t, s, "")
	}
}

// The storage executes a create after the run that asked for it was killed.
func TestUndoRemovesAVolumeThatAppearsLate(t *testing.T) {
	s := newStorage()
	var pauses []time.Duration
	keeper := volume.NewKeeper(s, func(_ context.Context, d time.Duration) error {
		pauses = append(pauses, d)
		s.add(volume.Free, s.madeAt(0))
		return nil
	})
	if left, err := keeper.Remove(t.Context(), undo()); err != nil || len(left) != 0 {
		t.Errorf("left %+v, %v", left, err)
	}
	wantLeft(t, s, "")
	if len(pauses) != 1 || pauses[0] < time.Second {
		t.Errorf("pauses %v", pauses)
	}
	if _, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: "v9", Noted: true}); err != nil || len(pauses) != 1 {
		t.Errorf("a delete by its PV pauses: %v, %v", pauses, err)
	}
}

// A storage may keep a host's name in a form of its own.
func TestHostIsTheSameInAStoragesOwnForm(t *testing.T) {
	for shown, names := range map[string]map[string]bool{
		"kube-nodes": {"kube-nodes": true, "Kube_Nodes": true, "kube nodes!": true, "kubenodes": false, "": false},
		"":           {"": true, "kube": false, "\u4e2d": true},
		"a.example":  {"A.Example.": true, "a-example": false},
	} {
		for name, want := range names {
			if got := volume.IsHost(shown, name); got != want {
				t.Errorf("%q shown for %q: %t", shown, name, got)
			}
		}
	}
}
