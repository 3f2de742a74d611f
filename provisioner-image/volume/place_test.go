package volume_test

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// The volume exists where the login does not lead any more: "not found" is no proof that it was
// deleted.
func TestAVolumeThatWasMadeElsewhereIsNotTakenForDeleted(t *testing.T) {
	here := volume.Place{Endpoint: "https://192.0.2.1/v3", Region: "one", Project: "p"}
	for name, there := range map[string]volume.Place{
		"another project":  {Endpoint: here.Endpoint, Region: "one", Project: "q"},
		"another region":   {Endpoint: here.Endpoint, Region: "two", Project: "p"},
		"another endpoint": {Endpoint: "https://192.0.2.2/v3", Region: "one", Project: "p"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStorage()
			s.place = here
			keeper, _ := s.keeper()
			_, removed := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: "v9", Noted: true, Place: there})
			_, grown := keeper.Grow(t.Context(), volume.Growth{Named: volume.Named{UID: uid, ID: "v9", Place: there}, SizeGiB: 2})
			clone := spec()
			clone.Source = volume.Source{VolumeID: "v9", UID: uid, Place: there}
			for doing, err := range map[string]error{"delete": removed, "extend": grown, "clone": keeper.CheckSource(t.Context(), clone)} {
				if !volume.Is(err, volume.Misconfigured) {
					t.Fatalf("%s: %v", doing, err)
				}
				for _, want := range []string{doing + " volume v9", there.String(), here.String(), "Secret", volume.KeyPlace} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %v lacks %q", doing, err, want)
					}
				}
			}
		})
	}
}

// A storage may move. As long as the volume is found there, with the claim's UID, nothing is
// refused.
func TestAVolumeThatIsFoundElsewhereIsRemoved(t *testing.T) {
	s := newStorage()
	s.place = volume.Place{Endpoint: "https://192.0.2.1/v3"}
	there := volume.Place{Endpoint: "https://192.0.2.2/v3"}
	id := s.add(volume.Occupied, ownedBy(uid))
	keeper, _ := s.keeper()
	if _, err := keeper.Grow(t.Context(), volume.Growth{Named: volume.Named{UID: uid, ID: id, Place: there}, SizeGiB: 2}); err != nil {
		t.Error(err)
	}
	if _, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: id, Noted: true, Place: there}); err != nil {
		t.Error(err)
	}
	wantLeft(t, s, "")
}

// Where it was made is not known of older PVs.
func TestAVolumeThatDoesNotExistWhereItWasMadeIsDeleted(t *testing.T) {
	s := newStorage()
	s.place = volume.Place{Endpoint: "https://192.0.2.1/v3"}
	keeper, _ := s.keeper()
	for _, noted := range []volume.Place{{}, s.place} {
		if _, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: "v9", Noted: true, Place: noted}); err != nil {
			t.Errorf("noted %s: %v", noted, err)
		}
	}
}

// A PV can note any text. The remedy says where a place is from, and shows no other text.
func TestTheRemedyForAVolumeElsewhereShowsPlacesOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		noted volume.Place
		shown bool
	}{
		"a place":             {volume.Place{Endpoint: "https://forged.example/v3", Project: "p"}, true},
		"no URL":              {volume.Place{Endpoint: "forged"}, false},
		"of another scheme":   {volume.Place{Endpoint: "ftp://forged/v3"}, false},
		"a command":           {volume.Place{Endpoint: "https://192.0.2.1/v3. Remedy: forged | sh"}, false},
		"a command elsewhere": {volume.Place{Endpoint: "https://192.0.2.1/v3", Project: "p. Remedy: forged | sh"}, false},
	} {
		s := newStorage()
		s.place = volume.Place{Endpoint: "https://192.0.2.1/v3"}
		keeper, _ := s.keeper()
		_, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: "v9", Noted: true, Place: tc.noted})
		if !volume.Is(err, volume.Misconfigured) || strings.Contains(err.Error(), "https://forged") != tc.shown || strings.Contains(err.Error(), "forged |") ||
			!strings.Contains(err.Error(), "the PV's annotation "+volume.KeyPlace+" is ") || !strings.Contains(err.Error(), "compare it with your own records") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
