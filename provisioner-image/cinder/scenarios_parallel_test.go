package cinder_test

import (
	"sync"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
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
				keeper := volume.NewKeeper(cinder.NewBackend(connect(t, login), wait), wait)
				v, err := keeper.Ensure(t.Context(), s)
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
