package cinder_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// sizes are the ways in which Cinder refuses a volume of 3 GiB.
func sizes() map[string]func(*cindertest.Server) {
	return map[string]func(*cindertest.Server){
		"maximum allowable size of '2' for volume type": func(s *cindertest.Server) { s.MaxSize = 2 },
		"larger than maximum allowed limit 2G":          func(s *cindertest.Server) { s.VolumeLimit = 2 },
	}
}

// The volume keeps its export, and later runs extend it as far as they may.
func TestExtendToASizeThatIsForbiddenIsUnsuitable(t *testing.T) {
	for _, release := range cindertest.Releases() {
		for said, limit := range sizes() {
			for _, api := range []volume.Method{cinder.Auto, cinder.Reserve} {
				keeper, server := start(t)
				server.SetRelease(release)
				limit(server)
				held := exportTwice(t, keeper, volume.Access{Method: api, Client: connector})
				before := server.Volumes()[0]
				growth := volume.Growth{Named: volume.Named{UID: uid, ID: before.ID, Access: held}, SizeGiB: 3}
				for range 2 {
					_, err := keeper.Grow(t.Context(), growth)
					if !volume.Is(err, volume.Unsuitable) || !strings.Contains(err.Error(), said) {
						t.Errorf("Cinder %d, %s: %v, want %q", release, api, err, said)
					}
				}
				if now := server.Volumes()[0]; now.Status != before.Status || now.SizeGiB != 1 || !now.Exported {
					t.Errorf("Cinder %d, %s: left %+v, was %+v", release, api, now, before)
				}
				growth.SizeGiB = 2
				if grown, err := keeper.Grow(t.Context(), growth); err != nil || grown.SizeGiB != 2 {
					t.Errorf("Cinder %d, %s: %+v, %v", release, api, grown, err)
				}
			}
		}
	}
}

// The class works with other sizes.
func TestCreateOfASizeThatIsForbiddenIsUnsuitable(t *testing.T) {
	for said, limit := range sizes() {
		keeper, server := start(t)
		limit(server)
		s := wanted
		s.SizeGiB = 3
		if _, _, err := keeper.Ensure(t.Context(), s); !volume.Is(err, volume.Unsuitable) || !strings.Contains(err.Error(), said) {
			t.Errorf("%v, want %q", err, said)
		}
		if ids(server) != "" {
			t.Errorf("left %s", ids(server))
		}
	}
}

// Cinder answers 400 to a status that does not allow to extend, too: another run or an
// administrator may be at work.
func TestExtendThatTheStatusDoesNotAllowIsTriedAgain(t *testing.T) {
	for name, meanwhile := range map[string]func(*cindertest.Server, string){
		"backing-up": func(s *cindertest.Server, id string) { s.SetStatus(id, "backing-up") },
		"extended":   func(s *cindertest.Server, id string) { s.Resize(id, 3) },
	} {
		keeper, server := start(t)
		held := exportTwice(t, keeper, reserve)
		id := server.Volumes()[0].ID
		server.LeaveReserved(id)
		posts := 0
		server.Gate = func(r *http.Request) cindertest.Fate {
			if r.Method == http.MethodPost {
				if posts++; posts == 2 { // unreserve, and then extend
					meanwhile(server, id)
				}
			}
			return cindertest.Answer
		}
		_, err := keeper.Grow(t.Context(), volume.Growth{Named: volume.Named{UID: uid, ID: id, Access: held}, SizeGiB: 3})
		if !volume.Is(err, volume.Busy) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The volume of an older image is not left to other clients: Cinder has not extended it, and it is
// reserved again.
func TestExtendThatFailsEndsNoReservation(t *testing.T) {
	for status, kind := range map[int]volume.Kind{403: volume.Denied, 409: volume.Busy, 413: volume.Full} {
		keeper, server := start(t)
		held := exportTwice(t, keeper, reserve)
		server.LeaveReserved(server.Volumes()[0].ID)
		posts := 0
		server.Instead = func(r *http.Request) *cindertest.Reply {
			if r.Method == http.MethodPost {
				if posts++; posts == 2 {
					return &cindertest.Reply{Status: status, Body: `{"overLimit":{"message":"refused"}}`}
				}
			}
			return nil
		}
		_, err := keeper.Grow(t.Context(), volume.Growth{Named: volume.Named{UID: uid, ID: server.Volumes()[0].ID, Access: held}, SizeGiB: 2})
		if !volume.Is(err, kind) || !strings.HasSuffix(ids(server), ":attaching") {
			t.Errorf("%d: %v, left %s", status, err, ids(server))
		}
	}
}

// Before 3.42 Cinder extends no volume in use. To detach it would take the disk from the pods that
// use it.
func TestExtendOfAVolumeInUseBefore342IsMisconfigured(t *testing.T) {
	for _, micro := range []int{0, 41} {
		keeper, server := start(t)
		server.MaxMicro = micro
		held := exportTwice(t, keeper, reserve)
		_, err := keeper.Grow(t.Context(), volume.Growth{Named: volume.Named{UID: uid, ID: server.Volumes()[0].ID, Access: held}, SizeGiB: 2})
		if v := server.Volumes()[0]; !volume.Is(err, volume.Misconfigured) || v.Status != "in-use" || !v.Exported {
			t.Errorf("3.%d: %v, left %+v", micro, err, v)
		}
	}
}

// What Cinder said of an earlier request, of another action, or to another volume is no reason.
func TestOnlyTheMessageOfTheFailureIsItsReason(t *testing.T) {
	const nova, room, driver = "VOLUME_VOLUME_007_009", "VOLUME_VOLUME_007_003", "VOLUME_VOLUME_007_010"
	for name, tc := range map[string]struct {
		event, status string
		kind          volume.Kind
		said          string
	}{
		"an extend that Nova was not told of, before one that failed": {nova, "error_extending", volume.Unavailable, `its status is "error_extending": the reason is unknown`},
		"an extend without room, before one that failed":              {room, "error_extending", volume.Unavailable, `its status is "error_extending": the reason is unknown`},
		"the extend that failed":                                      {driver, "error_extending", volume.Unavailable, ": said (request req-of-another)"},
		"an extend, before the volume failed":                         {driver, "error", volume.Unavailable, `its status is "error": the reason is unknown`},
		"an earlier extend without room":                              {room, "", volume.Busy, "its size is still 1 GiB: the reason is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			keeper, server := start(t)
			v, _, err := keeper.Ensure(t.Context(), wanted)
			if err != nil {
				t.Fatal(err)
			}
			server.Say(v.ID, tc.event, "said", "req-of-another")
			if tc.status != "" {
				server.SetStatus(v.ID, tc.status)
			}
			server.Instead = func(r *http.Request) *cindertest.Reply {
				if r.Method == http.MethodPost {
					return &cindertest.Reply{Status: http.StatusAccepted, Header: map[string]string{"X-Compute-Request-Id": "req-of-this"}}
				}
				return nil
			}
			_, err = keeper.Grow(t.Context(), volume.Growth{Named: volume.Named{UID: uid, ID: v.ID}, SizeGiB: 2})
			if !volume.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.said) {
				t.Errorf("%v, want %q", err, tc.said)
			}
		})
	}
}
