package cinder_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"testing"
	"time"

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

// What Cinder needed for one volume of a run is how long the next one is not asked for.
func TestTheNextVolumeOfARunIsAskedForLessOften(t *testing.T) {
	_, server := start(t)
	server.Slow = 1000
	needed, waited, asked := time.Duration(0), time.Duration(0), 0
	pause := func(ctx context.Context, d time.Duration) error {
		waited, asked = waited+d, asked+1
		for _, v := range server.Volumes() {
			if waited >= needed {
				server.SetStatus(v.ID, "available")
			}
		}
		return ctx.Err()
	}
	c, err := cinder.Connect(t.Context(), credentials.Login{Endpoint: server.Endpoint()}, http.Client{}, pause)
	if err != nil {
		t.Fatal(err)
	}
	keeper := volume.NewKeeper(cinder.NewBackend(c, pause), pause)
	for _, one := range []struct {
		name   string
		needs  time.Duration
		asked  int
		within time.Duration
	}{
		{"the first", 6 * time.Second, 13, 8 * time.Second},
		{"one like it", 6 * time.Second, 3, 8 * time.Second},
		{"a faster one", time.Second, 1, 6 * time.Second},
		{"another fast one", time.Second, 1, 4 * time.Second},
		{"after a slow one", 30 * time.Second, 13, 38 * time.Second},
		{"the fast one after a slow one", time.Second, 1, 5 * time.Second},
	} {
		spec := wanted
		spec.UID = rand.Text()
		spec.Metadata, needed, waited, asked = owned(spec.UID), one.needs, 0, 0
		if _, _, err := keeper.Ensure(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if asked > one.asked || waited > one.within {
			t.Errorf("%s was asked for %d times in %s", one.name, asked, waited)
		}
	}
}
