package cinder_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

const uid = "8d5a6f3c-1f0e-4c11-9a55-0d8f6a3c1b2e"

var (
	connector = volume.Client{Initiator: "iqn.2026-11.io.flex-provisioner:nodes"}
	reserve   = volume.Access{Method: cinder.Reserve, Client: connector}
	attach    = volume.Access{Method: cinder.Attachments, Client: connector}
	wanted    = volume.Spec{
		UID: uid, Name: "pvc-" + uid, SizeGiB: 1, Metadata: owned(uid), Access: reserve,
	}
)

// madeAfter returns the metadata of a volume that a run asked for so many seconds after the first
// one.
func madeAfter(seconds int) map[string]string {
	m := owned(uid)
	m["flex-provisioner.io/made-at"] = time.Now().Add(time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339Nano)
	return m
}

func owned(by string) map[string]string { return map[string]string{volume.KeyUID: by} }

// atOnce does not wait: time passes for a fake Cinder with every GET of a volume.
func atOnce(ctx context.Context, _ time.Duration) error { return ctx.Err() }

func start(t *testing.T) (*volume.Keeper, *cindertest.Server) {
	t.Helper()
	server := cindertest.New()
	t.Cleanup(server.Close)
	c, err := cinder.Connect(t.Context(), credentials.Login{Endpoint: server.Endpoint()}, http.Client{}, atOnce)
	if err != nil {
		t.Fatal(err)
	}
	return volume.NewKeeper(cinder.NewBackend(c, atOnce), atOnce), server
}

func ids(s *cindertest.Server) string {
	var all []string
	for _, v := range s.Volumes() {
		all = append(all, v.ID[:8]+":"+v.Status)
	}
	return strings.Join(all, " ")
}

// Ensure uses, replaces or removes what exists in Cinder before.
func TestEnsureUsesWhatIsInCinder(t *testing.T) {
	tests := map[string]struct {
		there []string
		after string
	}{
		"nothing":                        {nil, "00000001:available"},
		"a volume of ours":               {[]string{"available"}, "00000001:available"},
		"one that is being made":         {[]string{"creating"}, "00000001:available"},
		"one that is reserved":           {[]string{"attaching"}, "00000001:attaching"},
		"one that failed":                {[]string{"error"}, "00000002:available"},
		"one that is being deleted":      {[]string{"deleting"}, "00000001:deleting 00000002:available"},
		"two: the oldest stays":          {[]string{"available", "available"}, "00000001:available"},
		"two, the newer one reserved":    {[]string{"available", "attaching"}, "00000001:available"},
		"a failed one before a good one": {[]string{"error", "available"}, "00000002:available"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			keeper, server := start(t)
			for i, status := range tc.there {
				server.AddNamed(wanted.Name, status, madeAfter(i))
			}
			v, _, err := keeper.Ensure(t.Context(), wanted)
			if err != nil {
				t.Fatal(err)
			}
			if got := ids(server); got != tc.after || !strings.Contains(tc.after, v.ID[:8]) {
				t.Errorf("afterwards %s, using %s; want %s", got, v.ID, tc.after)
			}
		})
	}
}

func TestEnsureIgnoresVolumesOfOtherClaims(t *testing.T) {
	keeper, server := start(t)
	server.Add("available", owned("other"))
	server.Add("available", nil)
	if v, _, err := keeper.Ensure(t.Context(), wanted); err != nil || v.ID[:8] != "00000003" || len(server.Volumes()) != 3 {
		t.Errorf("volume %s, %v, %s", v.ID, err, ids(server))
	}
}

// After an answer that was lost Ensure lists the volumes, and never creates a second one.
func TestCreateIsNotRepeatedAfterALostAnswer(t *testing.T) {
	for name, fate := range map[string]cindertest.Fate{"done": cindertest.DropAnswer, "not done": cindertest.DropRequest} {
		t.Run(name, func(t *testing.T) {
			keeper, server := start(t)
			var creates atomic.Int32 // a request whose connection is closed may still be counted
			server.Gate = func(r *http.Request) cindertest.Fate {
				if r.Method != http.MethodPost {
					return cindertest.Answer
				}
				creates.Add(1)
				return fate
			}
			v, _, err := keeper.Ensure(t.Context(), wanted)
			if done := fate == cindertest.DropAnswer; done != (err == nil) || done != (v.ID != "") {
				t.Errorf("volume %q, error %v", v.ID, err)
			}
			if err != nil && !volume.Is(err, volume.Unavailable) {
				t.Error(err)
			}
			if n := creates.Load(); n != 1 {
				t.Errorf("%d requests to create", n)
			}
		})
	}
}

// A second run creates a volume after this one has listed them and before it creates its own. Both
// must keep the same one.
func TestOverlappingRunsAgreeOnTheOldestVolume(t *testing.T) {
	keeper, server := start(t)
	once := true
	server.Gate = func(r *http.Request) cindertest.Fate {
		if once && r.Method == http.MethodPost {
			once = false
			server.AddNamed(wanted.Name, "available", madeAfter(0))
		}
		return cindertest.Answer
	}
	if v, _, err := keeper.Ensure(t.Context(), wanted); err != nil || v.ID[:8] != "00000001" {
		t.Errorf("using %s, %v", v.ID, err)
	}
	if got := ids(server); got != "00000001:available" {
		t.Errorf("afterwards %s", got)
	}
}

// With a Cinder whose list does not show the new volume every run would create another one.
func TestListWithoutTheNewVolumeIsMisconfigured(t *testing.T) {
	keeper, server := start(t)
	server.Instead = func(r *http.Request) *cindertest.Reply {
		if !strings.HasSuffix(r.URL.Path, "/detail") {
			return nil
		}
		return &cindertest.Reply{Status: http.StatusOK, Header: map[string]string{"Content-Type": "application/json"}, Body: `{"volumes": []}`}
	}
	v, _, err := keeper.Ensure(t.Context(), wanted)
	if !volume.Is(err, volume.Misconfigured) || v.ID == "" {
		t.Errorf("volume %q, error %v", v.ID, err)
	}
	if _, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: v.ID}); err != nil || ids(server) != "" {
		t.Errorf("not removed by its ID: %v, %s", err, ids(server))
	}
}

func TestEnsureSaysWhyTheVolumeIsNotUsable(t *testing.T) {
	tests := map[string]struct {
		setup func(*cindertest.Server, *volume.Spec)
		kind  volume.Kind
		said  string
		left  string
	}{
		"no backend has room": {
			func(_ *cindertest.Server, s *volume.Spec) { s.Type = cindertest.TypeFull },
			volume.Full, "Could not find any available weighted backend", "00000001:error",
		},
		"quota": {
			func(s *cindertest.Server, _ *volume.Spec) { s.Quota = 0 },
			volume.Full, "VolumeLimitExceeded", "",
		},
		"worked on by somebody": {
			func(s *cindertest.Server, _ *volume.Spec) { s.AddNamed(wanted.Name, "awaiting-transfer", owned(uid)) },
			volume.Busy, `"awaiting-transfer"`, "00000001:awaiting-transfer",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			keeper, server := start(t)
			s := wanted
			tc.setup(server, &s)
			_, _, err := keeper.Ensure(t.Context(), s)
			if !volume.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.said) || ids(server) != tc.left {
				t.Errorf("error %v, left %q", err, ids(server))
			}
		})
	}
}

// A run or an administrator can leave a volume in any of these statuses.
func TestRemoveStartsFromEveryStatus(t *testing.T) {
	for _, status := range []string{"creating", "available", "attaching", "error", "deleting", "detaching"} {
		t.Run(status, func(t *testing.T) {
			keeper, server := start(t)
			id := server.AddNamed(wanted.Name, status, owned(uid))
			if _, err := keeper.Remove(t.Context(), volume.Target{UID: uid, Name: wanted.Name, Access: reserve}); err != nil {
				t.Fatal(err)
			}
			if _, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: id}); err != nil || ids(server) != "" {
				t.Errorf("again: %v, left %s", err, ids(server))
			}
		})
	}
}

func TestRemoveDeletesEveryVolumeThatARunMade(t *testing.T) {
	keeper, server := start(t)
	server.AddNamed(wanted.Name, "available", madeAfter(0))
	server.AddNamed(wanted.Name, "error", madeAfter(1))
	other := server.Add("available", owned("other"))
	unmarked := server.Add("available", nil)
	if _, err := keeper.Remove(t.Context(), volume.Target{UID: uid, Name: wanted.Name}); err != nil {
		t.Fatal(err)
	}
	if got := ids(server); got != other[:8]+":available "+unmarked[:8]+":available" {
		t.Errorf("left %s", got)
	}
}

// Cinder restores name and metadata of a volume with its backup, also to a new volume.
func TestRestoredBackupOfAClaimsVolumeIsLeft(t *testing.T) {
	keeper, server := start(t)
	own := server.AddNamed(wanted.Name, "available", owned(uid))
	restored := server.AddNamed(wanted.Name, "available", owned(uid))
	left, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: own, Noted: true, Name: wanted.Name})
	if err != nil || len(left) != 1 || left[0].ID != restored || ids(server) != restored[:8]+":available" {
		t.Errorf("left %+v of %s, %v", left, ids(server), err)
	}
}

// The answer is one of Cinder's: a server by its ID, a client without a server by its host.
func TestUndoLeavesWhatOthersHaveAttached(t *testing.T) {
	keeper, server := start(t)
	id := server.AddNamed(wanted.Name, "in-use", owned(uid))
	for attachment, whom := range map[string]string{
		`{"server_id": "vm-1", "host_name": "node"}`: "server vm-1",
		`{"server_id": null, "host_name": "backup"}`: "host backup",
	} {
		server.Instead = func(*http.Request) *cindertest.Reply {
			return &cindertest.Reply{Status: http.StatusOK, Header: map[string]string{"Content-Type": "application/json"}, Body: `{"volumes": [{"id": "` + id + `", "name": "` + wanted.Name +
				`", "status": "in-use", "metadata": {"` + volume.KeyUID + `": "` + uid + `"}, "attachments": [` + attachment + `]}]}`}
		}
		left, err := keeper.Remove(t.Context(), volume.Target{UID: uid, Name: wanted.Name, Undo: true})
		if err != nil || len(left) != 1 || !strings.Contains(left[0].Why, "in use by "+whom) {
			t.Errorf("left %+v, %v", left, err)
		}
	}
}

func TestRemoveRefusesAVolumeInUseOrOfAnotherClaim(t *testing.T) {
	keeper, server := start(t)
	server.AddNamed(wanted.Name, "in-use", owned(uid))
	other := server.Add("available", owned("other"))
	if _, err := keeper.Remove(t.Context(), volume.Target{UID: uid, Name: wanted.Name}); !volume.Is(err, volume.Busy) {
		t.Errorf("in use: %v", err)
	}
	_, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: other})
	if !volume.Is(err, volume.Misconfigured) || !strings.Contains(err.Error(), `belongs to claim "other"`) {
		t.Errorf("another claim's: %v", err)
	}
	if len(server.Volumes()) != 2 {
		t.Errorf("left %s", ids(server))
	}
}

// A storage can accept a deletion and then silently not do it.
func TestRemoveFailsWhenCinderDoesNotDelete(t *testing.T) {
	keeper, server := start(t)
	id := server.AddNamed(wanted.Name, "available", owned(uid))
	server.Gate = func(r *http.Request) cindertest.Fate {
		if r.Method == http.MethodGet && server.Volumes()[0].Status == "deleting" {
			server.SetStatus(id, "available")
		}
		return cindertest.Answer
	}
	_, err := keeper.Remove(t.Context(), volume.Target{UID: uid, Name: wanted.Name})
	if !volume.Is(err, volume.Busy) || !strings.Contains(err.Error(), "did not delete it") {
		t.Error(err)
	}
}

// The volume's status shows that it is reserved.
func TestReserveIsNotRepeatedAfterALostAnswer(t *testing.T) {
	keeper, server := start(t)
	v, _, err := keeper.Ensure(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	lost := false
	server.Gate = func(r *http.Request) cindertest.Fate {
		if r.Method == http.MethodPost && !lost {
			lost = true
			return cindertest.DropAnswer
		}
		return cindertest.Answer
	}
	if _, _, err := keeper.Export(t.Context(), v, reserve); err != nil {
		t.Error(err)
	}
}

// The error says what the run waited for.
func TestWaitEndsWithItsContext(t *testing.T) {
	_, server := start(t)
	server.Slow = 1000
	c, err := cinder.Connect(t.Context(), credentials.Login{Endpoint: server.Endpoint()}, http.Client{}, atOnce)
	if err != nil {
		t.Fatal(err)
	}
	var pauses []time.Duration
	pause := func(_ context.Context, d time.Duration) error {
		if pauses = append(pauses, d); len(pauses) == 20 {
			return context.Canceled
		}
		return nil
	}
	keeper := volume.NewKeeper(cinder.NewBackend(c, pause), pause)
	_, _, err = keeper.Ensure(t.Context(), wanted)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `in status "creating"`) {
		t.Error(err)
	}
	if pauses[0] != 100*time.Millisecond || pauses[19] != 5*time.Second {
		t.Errorf("pauses were %v", pauses)
	}
}
