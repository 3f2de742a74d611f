package volume_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

func spec() volume.Spec {
	return volume.Spec{UID: uid, Name: "pvc-" + uid, SizeGiB: 1, Type: "plain", Metadata: ownedBy(uid), Asked: time.Now()}
}

// Ensure uses, replaces or removes what exists in the storage before.
func TestEnsureUsesWhatAnEarlierRunMade(t *testing.T) {
	tests := map[string]struct {
		there []volume.State
		uses  string
		left  string
	}{
		"nothing":                        {nil, "v1", "v1:1"},
		"a volume of the claim's":        {[]volume.State{volume.Free}, "v1", "v1:1"},
		"one that is exported":           {[]volume.State{volume.Occupied}, "v1", "v1:0"},
		"one that failed":                {[]volume.State{volume.Failed}, "v2", "v2:1"},
		"one that is being deleted":      {[]volume.State{volume.Deleting}, "v2", "v1:3 v2:1"},
		"two: the oldest stays":          {[]volume.State{volume.Occupied, volume.Free}, "v1", "v1:0"},
		"a failed one before a good one": {[]volume.State{volume.Failed, volume.Free}, "v2", "v2:1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStorage()
			for i, state := range tc.there {
				s.add(state, s.madeAt(time.Duration(i)*time.Second))
			}
			keeper, _ := s.keeper()
			v, _, err := keeper.Ensure(t.Context(), spec())
			if err != nil || v.ID != tc.uses {
				t.Errorf("using %q, want %q (%v)", v.ID, tc.uses, err)
			}
			wantLeft(t, s, tc.left)
		})
	}
}

// After a lost answer the volumes are listed. If the list shows none, the error of the request is
// returned. No second volume is created.
func TestEnsureLooksAfterALostAnswerOfCreate(t *testing.T) {
	for name, done := range map[string]bool{"done": true, "not done": false} {
		t.Run(name, func(t *testing.T) {
			s := newStorage()
			if lost := failing("Create", volume.Unavailable); done {
				s.after = lost
			} else {
				s.before = lost
			}
			keeper, _ := s.keeper()
			v, _, err := keeper.Ensure(t.Context(), spec())
			if done != (err == nil) || done != (v.ID != "") {
				t.Errorf("volume %q, %v", v.ID, err)
			}
			if creates := count(s.calls, "Create"); creates != 1 {
				t.Errorf("%d creates", creates)
			}
		})
	}
}

func count(calls []string, method string) int {
	return len(slices.DeleteFunc(slices.Clone(calls), func(called string) bool { return called != method }))
}

// A refusal is certain, so that no list is needed.
func TestEnsureDoesNotLookAfterARefusedCreate(t *testing.T) {
	s := newStorage()
	s.before = failing("Create", volume.Full)
	keeper, _ := s.keeper()
	if _, _, err := keeper.Ensure(t.Context(), spec()); !volume.Is(err, volume.Full) || !slices.Equal(s.calls, []string{"List", "Create"}) {
		t.Errorf("%v after %v", err, s.calls)
	}
}

// Two runs that overlap both create. They agree on which volume stays.
func TestEnsureKeepsTheOldestOfOverlappingRuns(t *testing.T) {
	s := newStorage()
	s.before = func(method string) error {
		if method == "Create" {
			s.add(volume.Free, s.madeAt(0))
		}
		return nil
	}
	keeper, _ := s.keeper()
	if v, _, err := keeper.Ensure(t.Context(), spec()); err != nil || v.ID != "v1" {
		t.Errorf("using %q, %v", v.ID, err)
	}
	wantLeft(t, s, "v1:1")
}

func TestEnsureReturnsTheVolumeThatStaysWhenASpareOneCannotBeRemoved(t *testing.T) {
	s := newStorage()
	s.add(volume.Free, s.madeAt(0))
	s.add(volume.Free, s.madeAt(time.Second))
	s.before = failing("Delete", volume.Busy)
	keeper, _ := s.keeper()
	v, _, err := keeper.Ensure(t.Context(), spec())
	if !volume.Is(err, volume.Busy) || v.ID != "v1" || !strings.Contains(err.Error(), "delete a second volume of the same claim") {
		t.Errorf("using %q, %v", v.ID, err)
	}
}

// With a storage whose list never shows the new volume every run would create another one.
func TestEnsureWaitsForTheListToShowTheVolume(t *testing.T) {
	for hidden, pauses := range map[int]int{0: 0, 2: 2, 9: 5} {
		s := newStorage()
		s.hidden = hidden
		keeper, made := s.keeper()
		v, _, err := keeper.Ensure(t.Context(), spec())
		if seen := hidden < 5; seen != (err == nil) || !seen && !volume.Is(err, volume.Misconfigured) || v.ID != "v1" {
			t.Errorf("hidden %d times: volume %q, %v", hidden, v.ID, err)
		}
		if len(*made) != pauses || pauses > 1 && (*made)[1] != 2*(*made)[0] {
			t.Errorf("hidden %d times: pauses %v", hidden, *made)
		}
	}
}

func TestEnsureStopsWithItsContext(t *testing.T) {
	s := newStorage()
	s.hidden = 9
	stopped := errors.New("stopped")
	keeper := volume.NewKeeper(s, func(context.Context, time.Duration) error { return stopped })
	if v, _, err := keeper.Ensure(t.Context(), spec()); !errors.Is(err, stopped) || v.ID != "v1" {
		t.Errorf("volume %q, %v", v.ID, err)
	}
}

func TestEnsureFailsWhenTheVolumeIsNeverReady(t *testing.T) {
	s := newStorage()
	s.before = failing("Ready", volume.Full)
	keeper, _ := s.keeper()
	if v, _, err := keeper.Ensure(t.Context(), spec()); !volume.Is(err, volume.Full) || v.ID != "v1" {
		t.Errorf("volume %q, which is to be rolled back, %v", v.ID, err)
	}
}
