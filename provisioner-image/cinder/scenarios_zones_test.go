package cinder_test

import (
	"os"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// zonesEnv says of the real Cinder that it has a second zone: FLEX_TEST_CINDER_ZONES=strict or, if
// it has allow_availability_zone_fallback, =fallback. Without it the real one takes no part.
const zonesEnv = "FLEX_TEST_CINDER_ZONES"

// onCindersWithZones runs a test on fakes with both values of both options that are about zones, and
// on a real Cinder that has two zones. It says whether the Cinder falls back.
func onCindersWithZones(t *testing.T, test func(t *testing.T, c *cinder.Cinder, keeper *volume.Keeper, fallsBack bool)) {
	t.Helper()
	on := func(t *testing.T, login credentials.Login, fallsBack bool) {
		t.Helper()
		c := connect(t, login)
		test(t, c, keep(c), fallsBack)
	}
	for name, setUp := range map[string]func(*cindertest.Server){
		"strict":                    func(*cindertest.Server) {},
		"clones anywhere":           func(s *cindertest.Server) { s.ClonesAnywhere = true },
		"fallback":                  func(s *cindertest.Server) { s.ZoneFallback = true },
		"fallback, clones anywhere": func(s *cindertest.Server) { s.ZoneFallback, s.ClonesAnywhere = true, true },
	} {
		t.Run(name, func(t *testing.T) {
			onFakes(t, cindertest.Releases(), setUp, func(t *testing.T, login credentials.Login) {
				t.Helper()
				on(t, login, strings.HasPrefix(name, "fallback"))
			})
		})
	}
	if openrc, zones := os.Getenv("FLEX_TEST_CINDER"), os.Getenv(zonesEnv); openrc != "" && zones != "" {
		t.Run("real", func(t *testing.T) { on(t, readOpenrc(t, openrc), zones == "fallback") })
	}
}

// A volume is where Cinder made it, and its zone is known when it is ready.
func TestVolumeIsInTheZoneThatWasAskedFor(t *testing.T) {
	onCindersWithZones(t, func(t *testing.T, c *cinder.Cinder, keeper *volume.Keeper, _ bool) {
		t.Helper()
		far, anywhere := spec(t, c), spec(t, c)
		far.Type, far.Zone, far.Zones = cindertest.TypeFar, cindertest.ZoneFar, []string{cindertest.ZoneFar}
		if v, _, err := keeper.Ensure(t.Context(), far); err != nil || v.Zone != cindertest.ZoneFar {
			t.Errorf("%+v, %v", v, err)
		}
		if v, _, err := keeper.Ensure(t.Context(), anywhere); err != nil || v.Zone != cindertest.Zone {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// A Cinder that falls back makes the volume in its default zone, and says so only in the volume. It
// is not taken, neither by the run that made it nor by the next one, unless the class says so.
func TestVolumeInAZoneThatCinderChoseIsRefused(t *testing.T) {
	onCindersWithZones(t, func(t *testing.T, c *cinder.Cinder, keeper *volume.Keeper, fallsBack bool) {
		t.Helper()
		s := spec(t, c)
		s.Zone, s.Zones = "mars", []string{"mars"}
		said := "'mars' is invalid"
		if fallsBack {
			said = `it is in zone "nova", and must be in zone "mars"`
		}
		for range 2 {
			v, _, err := keeper.Ensure(t.Context(), s)
			if !volume.Is(err, volume.Misconfigured) || !strings.Contains(err.Error(), said) || (v.ID != "") != fallsBack {
				t.Errorf("%+v, %v, want %q", v, err, said)
			}
		}
		s.AnyZone, s.Zone = true, ""
		if v, _, err := keeper.Ensure(t.Context(), s); err != nil || v.Zone != cindertest.Zone {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// A clone is made where its source is, whatever zone Cinder would choose for an empty volume. A
// claim that may not have it there is refused before anything is made.
func TestCloneIsInTheZoneOfItsSource(t *testing.T) {
	onCindersWithZones(t, func(t *testing.T, c *cinder.Cinder, keeper *volume.Keeper, _ bool) {
		t.Helper()
		one, two := spec(t, c), spec(t, c)
		one.Type, one.Zone = cindertest.TypeFar, cindertest.ZoneFar
		from, _, err := keeper.Ensure(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		two.Type, two.Source = cindertest.TypeFar, volume.Source{VolumeID: from.ID, UID: one.UID}
		two.Zones = []string{cindertest.Zone}
		if err := keeper.CheckSource(t.Context(), two); !volume.Is(err, volume.Unsuitable) || !strings.Contains(err.Error(), `the source is in zone "far"`) {
			t.Errorf("a clone that must be elsewhere: %v", err)
		}
		two.Zones = []string{cindertest.Zone, cindertest.ZoneFar}
		if err := keeper.CheckSource(t.Context(), two); err != nil {
			t.Fatal(err)
		}
		if v, _, err := keeper.Ensure(t.Context(), two); err != nil || v.Zone != cindertest.ZoneFar {
			t.Errorf("%+v, %v", v, err)
		}
		target := volume.Target{UID: two.UID, Name: two.Name, Access: two.Access}
		if _, err := keeper.Remove(t.Context(), target); err != nil { // some storages keep the source for it
			t.Error(err)
		}
	})
}

// An existing volume is adopted where it may be, and no other one.
func TestVolumeInAnotherZoneIsNotAdopted(t *testing.T) {
	onCindersWithZones(t, func(t *testing.T, c *cinder.Cinder, keeper *volume.Keeper, _ bool) {
		t.Helper()
		old, s := spec(t, c), spec(t, c)
		there, _, err := keeper.Ensure(t.Context(), old)
		if err == nil {
			err = c.SetMetadata(t.Context(), there.ID, map[string]string{})
		}
		if err != nil {
			t.Fatal(err)
		}
		s.Adopt, s.Zones = there.ID, []string{cindertest.ZoneFar}
		if v, _, err := keeper.Ensure(t.Context(), s); !volume.Is(err, volume.Unsuitable) || !strings.Contains(err.Error(), `it is in zone "nova"`) {
			t.Errorf("%+v, %v", v, err)
		}
		s.Zones = []string{cindertest.Zone}
		if v, _, err := keeper.Ensure(t.Context(), s); err != nil || v.ID != there.ID {
			t.Errorf("%+v, %v", v, err)
		}
		if err := c.SetMetadata(t.Context(), there.ID, old.Metadata); err != nil { // the test's clean-up finds it by that
			t.Error(err)
		}
	})
}
