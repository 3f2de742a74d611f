package volume_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

func TestListIsOldestFirst(t *testing.T) {
	s := newStorage()
	for _, cluster := range []string{"one", "two", "one"} {
		s.add(volume.Free, map[string]string{volume.KeyUID: uid, volume.KeyCluster: cluster})
	}
	keeper, _ := s.keeper()
	for cluster, want := range map[string]string{"one": "v1 v3", "two": "v2", "": "v1 v2 v3"} {
		all, err := keeper.List(t.Context(), cluster)
		var ids []string
		for _, v := range all {
			ids = append(ids, v.ID)
		}
		if got := strings.Join(ids, " "); err != nil || got != want {
			t.Errorf("cluster %q: listed %s, want %s (%v)", cluster, got, want, err)
		}
	}
}

// An export that is recorded is looked up, never made.
func TestReachOnlyLooksAnExportUp(t *testing.T) {
	s := newStorage()
	id := s.add(volume.Free, ownedBy(uid))
	keeper, _ := s.keeper()
	_, recorded, err := keeper.Export(t.Context(), s.volumes[id], volume.Access{Method: "any"})
	if err != nil || recorded.ID == "" || recorded.Recorded {
		t.Fatalf("%+v, %v", recorded, err)
	}
	c, err := keeper.Reach(t.Context(), volume.Named{UID: uid, ID: id, Access: recorded})
	var details struct{ ID string }
	if err != nil || c.Decode(&details) != nil || details.ID != id {
		t.Errorf("%v, %v", details, err)
	}
	if !slices.Equal(s.calls, []string{"Export", "Get", "Look up"}) {
		t.Errorf("calls %v", s.calls)
	}
}
