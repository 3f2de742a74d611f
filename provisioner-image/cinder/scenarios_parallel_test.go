package cinder_test

import (
	"crypto/rand"
	"sync"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Thirty claims in parallel become thirty exported volumes, and all of them are removed.
func TestThirtyClaimsInParallel(t *testing.T) {
	onCinders(t, []int{21}, func(t *testing.T, login credentials.Login) {
		t.Helper()
		const claims = 30
		specs, ids := make([]volume.Spec, claims), make([]string, claims)
		for i := range specs {
			specs[i] = spec(t, connect(t, login))
		}
		var all sync.WaitGroup
		for i, s := range specs {
			all.Go(func() {
				// As in a run of its own, with a login and connections of its own.
				keeper := keep(connect(t, login))
				v, _, err := keeper.Ensure(t.Context(), s)
				if err == nil {
					_, _, err = keeper.Export(t.Context(), v, s.Access)
				}
				if err != nil {
					t.Errorf("claim %d: %v", i, err)
				}
				ids[i] = v.ID
			})
		}
		all.Wait()
		distinct := map[string]bool{}
		for _, id := range ids {
			distinct[id] = true
		}
		if len(distinct) != claims || distinct[""] {
			t.Errorf("%d volumes of %d claims", len(distinct), claims)
		}
	})
}

// The volumes of one cluster are listed, and no others. A page that is full may not be the last.
func TestVolumesOfAClusterAreListedIfTheyFitOnAPage(t *testing.T) {
	onEachCinder(t, func(t *testing.T, login credentials.Login) {
		t.Helper()
		c, cluster := connect(t, login), rand.Text()
		for _, uid := range []string{cluster, cluster, rand.Text()} {
			s := spec(t, c)
			s.ClusterUID = uid
			if _, _, err := keep(c).Ensure(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		for most, want := range map[int]bool{1: false, 3: true, 250: true} {
			found, areAll, err := c.ListFirst(t.Context(), cluster, most)
			if err != nil || len(found) != min(most, 2) || areAll != want {
				t.Errorf("at most %d: %d volumes, which are all: %t, %v", most, len(found), areAll, err)
			}
		}
		if found, areAll, err := c.ListFirst(t.Context(), "another", 250); err != nil || len(found) > 0 || !areAll {
			t.Errorf("of another cluster: %d volumes, which are all: %t, %v", len(found), areAll, err)
		}
	})
}
