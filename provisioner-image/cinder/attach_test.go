package cinder_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/body"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// Auto uses attachments where Cinder can complete them, and the older workflow otherwise.
func TestAutoUsesAttachmentsWhereCinderCanCompleteThem(t *testing.T) {
	for micro, want := range map[int]volume.Method{70: cinder.Attachments, 44: cinder.Attachments, 43: cinder.Reserve, 0: cinder.Reserve} {
		keeper, server := start(t)
		server.MaxMicro = micro
		v, _, err := keeper.Ensure(t.Context(), wanted)
		if err != nil {
			t.Fatal(err)
		}
		_, held, err := keeper.Export(t.Context(), v, volume.Access{Method: cinder.Auto, Client: connector})
		if err != nil || held.Method != want || (held.ID != "") != (want == cinder.Attachments) {
			t.Errorf("3.%d: held by %+v, %v", micro, held, err)
		}
		if _, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: v.ID, Access: held}); err != nil || ids(server) != "" {
			t.Errorf("3.%d: %v, left %s", micro, err, ids(server))
		}
	}
}

// From Queens to Ussuri, and in 17.0, Cinder knows 3.44 and makes attachments only for servers.
func TestAutoReservesWhereAttachmentsNeedAServer(t *testing.T) {
	for _, release := range cindertest.Releases() {
		want := cinder.Attachments
		if release == 17 {
			want = cinder.Reserve
		}
		for name, recorded := range map[string]bool{"its record": true, "no record": false} {
			keeper, server := start(t)
			server.SetRelease(release)
			auto := volume.Access{Method: cinder.Auto, Client: connector}
			held := exportTwice(t, keeper, auto)
			if v := server.Volumes()[0]; held.Method != want || (held.ID != "") != (want == cinder.Attachments) || !v.Exported {
				t.Errorf("Cinder %d: held by %+v, %+v", release, held, v)
			}
			if !recorded {
				held = auto
			}
			if _, err := keeper.Remove(t.Context(), volume.Target{UID: uid, Name: wanted.Name, Access: held}); err != nil || ids(server) != "" {
				t.Errorf("Cinder %d, by %s: %v, left %s", release, name, err, ids(server))
			}
		}
	}
}

// exportTwice makes the claim's volume and exports it in two runs, which have to export it in the
// same way.
func exportTwice(t *testing.T, k *volume.Keeper, a volume.Access) volume.Access {
	t.Helper()
	s := wanted
	s.Access = a
	var held []volume.Access
	for range 2 {
		v, _, err := k.Ensure(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		c, by, err := k.Export(t.Context(), v, a)
		if err != nil || c.Kind != "iscsi" {
			t.Fatalf("%v, %v", c, err)
		}
		held = append(held, by)
	}
	if held[0].Method != held[1].Method || held[0].ID != held[1].ID {
		t.Errorf("held by %+v, and then by %+v", held[0], held[1])
	}
	return held[0]
}

// A second run does not take back the export that the first one made: a node may use it when the
// runs overlap.
func TestAutoKeepsTheReservationOfAnEarlierRun(t *testing.T) {
	keeper, server := start(t)
	server.SetRelease(17)
	auto := volume.Access{Method: cinder.Auto, Client: connector}
	exportTwice(t, keeper, auto)
	v, _, err := keeper.Ensure(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	var posts []string
	server.Gate = func(r *http.Request) cindertest.Fate {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			posts = append(posts, strings.SplitN(string(body), `"`, 3)[1])
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		return cindertest.Answer
	}
	if _, _, err := keeper.Export(t.Context(), v, auto); err != nil || !slices.Equal(posts, []string{"os-initialize_connection"}) {
		t.Errorf("%v, requests %q", err, posts)
	}
}

// The class asks for what this Cinder cannot do.
func TestAttachmentsThatNeedAServerAreMisconfigured(t *testing.T) {
	keeper, server := start(t)
	server.SetRelease(17)
	s := wanted
	s.Access = attach
	v, _, err := keeper.Ensure(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := exportErr(t, keeper, v); !volume.Is(err, volume.Misconfigured) || !strings.Contains(err.Error(), "instance_uuid") {
		t.Error(err)
	}
}

// The steps that an earlier run completed are not repeated.
func TestAttachContinuesWhatAnEarlierRunLeft(t *testing.T) {
	tests := map[string]struct {
		left  func(t *testing.T, s *cindertest.Server, v volume.Volume)
		posts int
	}{
		"nothing":                           {func(*testing.T, *cindertest.Server, volume.Volume) {}, 2},
		"reserved by an attachment":         {func(_ *testing.T, s *cindertest.Server, v volume.Volume) { s.Attach(v.ID, "reserved") }, 1},
		"an attachment that failed":         {func(_ *testing.T, s *cindertest.Server, v volume.Volume) { s.Attach(v.ID, "error_attaching") }, 2},
		"reserved by the older workflow":    {func(_ *testing.T, s *cindertest.Server, v volume.Volume) { s.SetStatus(v.ID, "attaching") }, 4},
		"attached by the older workflow":    {func(_ *testing.T, s *cindertest.Server, v volume.Volume) { s.AttachHost(v.ID, "", body.MountPoint) }, 5},
		"attached, and the answer was lost": {func(_ *testing.T, s *cindertest.Server, v volume.Volume) { s.Attach(v.ID, "attached") }, 0},
		"attached, and Cinder died before it changed the volume": {func(_ *testing.T, s *cindertest.Server, v volume.Volume) {
			s.Attach(v.ID, "attached")
			s.SetStatus(v.ID, "attaching")
		}, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			keeper, server := start(t)
			v, _, err := keeper.Ensure(t.Context(), wanted)
			if err != nil {
				t.Fatal(err)
			}
			tc.left(t, server, v)
			posts := 0
			server.Gate = func(r *http.Request) cindertest.Fate {
				if r.Method == http.MethodPost {
					posts++
				}
				return cindertest.Answer
			}
			s := wanted
			s.Access = attach
			if v, _, err = keeper.Ensure(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			c, held, err := keeper.Export(t.Context(), v, attach)
			if err != nil || c.Kind != "iscsi" || len(server.Attachments()) != 1 || held.ID != server.Attachments()[0] {
				t.Errorf("%v, held by %+v, attached %v, %v", c, held, server.Attachments(), err)
			}
			if got := server.Volumes()[0].Status; got != "in-use" || posts != tc.posts {
				t.Errorf("status %s after %d POSTs, want in-use after %d", got, posts, tc.posts)
			}
		})
	}
}

// The attachments are listed instead.
func TestAttachIsNotRepeatedAfterALostAnswer(t *testing.T) {
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
	if _, _, err := keeper.Export(t.Context(), v, attach); err != nil || len(server.Attachments()) != 1 {
		t.Errorf("%v, attached %v", err, server.Attachments())
	}
}

// A volume that a server uses is neither adopted nor detached.
func TestVolumeOfAServerIsNeitherExportedNorRemoved(t *testing.T) {
	keeper, server := start(t)
	id := server.AddNamed(wanted.Name, "available", owned(uid))
	server.AttachServer(id, "vm-1")
	v := volume.Volume{ID: id, Status: "in-use"}
	for doing, err := range map[string]error{
		"export": exportErr(t, keeper, v),
		"remove": removeErr(t, keeper, volume.Target{UID: uid, ID: id, Noted: true, Access: attach}),
	} {
		if !volume.Is(err, volume.Busy) || !strings.Contains(err.Error(), "server vm-1") {
			t.Errorf("%s: %v", doing, err)
		}
	}
	if got := ids(server); !strings.HasSuffix(got, "in-use") {
		t.Errorf("left %s", got)
	}
}

func removeErr(t *testing.T, k *volume.Keeper, what volume.Target) error {
	t.Helper()
	_, err := k.Remove(t.Context(), what)
	return err
}

func exportErr(t *testing.T, k *volume.Keeper, v volume.Volume) error {
	t.Helper()
	_, _, err := k.Export(t.Context(), v, attach)
	return err
}

// An attachment that is not the recorded one belongs to another client.
func TestRemoveKeepsAttachmentsOtherThanTheRecordedOne(t *testing.T) {
	keeper, server := start(t)
	id := server.AddNamed(wanted.Name, "available", owned(uid))
	server.Attach(id, "attached")
	held := attach
	held.ID = "gone"
	_, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: id, Access: held})
	if !volume.Is(err, volume.Busy) || len(server.Attachments()) != 1 {
		t.Errorf("%v, attached %v", err, server.Attachments())
	}
}

// Reach returns the connection of the recorded export, and an error if the export no longer exists.
func TestReachReturnsTheRecordedExport(t *testing.T) {
	keeper, _ := start(t)
	v, _, err := keeper.Ensure(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	_, held, err := keeper.Export(t.Context(), v, attach)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := keeper.Reach(t.Context(), volume.Named{UID: uid, ID: v.ID, Access: held}); err != nil || c.Kind != "iscsi" {
		t.Errorf("%v, %v", c, err)
	}
	held.ID = "other"
	if _, err := keeper.Reach(t.Context(), volume.Named{UID: uid, ID: v.ID, Access: held}); !volume.Is(err, volume.Busy) {
		t.Error(err)
	}
}

// Cinder does not delete a volume with an attachment.
func TestRemoveDeletesAFailedAttachmentFirst(t *testing.T) {
	keeper, server := start(t)
	id := server.AddNamed(wanted.Name, "available", owned(uid))
	server.Attach(id, "error_attaching")
	server.SetStatus(id, "error_attaching")
	if _, err := keeper.Remove(t.Context(), volume.Target{UID: uid, Name: wanted.Name, Access: attach}); err != nil || ids(server) != "" {
		t.Errorf("%v, left %s", err, ids(server))
	}
}

// Extending a volume in use may fail. Cinder refuses to delete a volume that is attached, also in
// this status.
func TestRemoveDetachesAVolumeWhoseExtensionFailed(t *testing.T) {
	keeper, server := start(t)
	v, _, err := keeper.Ensure(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	_, held, err := keeper.Export(t.Context(), v, attach)
	if err != nil {
		t.Fatal(err)
	}
	server.SetStatus(v.ID, "error_extending")
	var detached bool
	server.Gate = func(r *http.Request) cindertest.Fate {
		detached = detached || r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/attachments/")
		if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/volumes/") && !detached {
			t.Error("the volume is deleted before it is detached")
		}
		return cindertest.Answer
	}
	if _, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: v.ID, Noted: true, Access: held}); err != nil || ids(server) != "" || !detached {
		t.Errorf("%v, left %s", err, ids(server))
	}
}

// The status of a volume whose extension has failed does not say that it is attached, and Cinder
// does not delete it.
func TestRemoveDetachesAVolumeThatFailed(t *testing.T) {
	for _, status := range []string{"error_extending", "error_deleting", "error"} {
		for _, api := range []volume.Method{cinder.Auto, cinder.Attachments, cinder.Reserve} {
			keeper, server := start(t)
			held := exportTwice(t, keeper, volume.Access{Method: api, Client: connector})
			server.SetStatus(server.Volumes()[0].ID, status)
			if status == "error_deleting" && api == cinder.Reserve {
				continue // there is nothing to detach: an administrator has to reset the status
			}
			if _, err := keeper.Remove(t.Context(), volume.Target{UID: uid, Name: wanted.Name, Access: held}); err != nil || ids(server) != "" {
				t.Errorf("%s, %s: %v, left %s", status, api, err, ids(server))
			}
		}
	}
}

// To a member Cinder refuses the filters that its resource_filters.json does not list, and an
// installation by pip does not have that file in its place.
func TestMemberOfACinderWithoutItsFileOfFiltersIsServed(t *testing.T) {
	for _, release := range cindertest.Releases() {
		for _, method := range []volume.Method{cinder.Auto, cinder.Attachments, cinder.Reserve} {
			if release == 17 && method == cinder.Attachments {
				continue // it makes attachments for servers only
			}
			keeper, server := start(t)
			server.SetRelease(release)
			server.NoFilters, server.HidesHosts = true, true
			server.Add("available", owned("another"))
			access := volume.Access{Method: method, Client: connector}
			held := exportTwice(t, keeper, access)
			for _, a := range []volume.Access{held, access} {
				target := volume.Target{UID: uid, Name: wanted.Name, Access: a}
				if _, err := keeper.Remove(t.Context(), target); err != nil {
					t.Errorf("Cinder %d, %s: %v", release, method, err)
				}
			}
			if left := server.Volumes(); len(left) != 1 {
				t.Errorf("Cinder %d, %s: left %+v", release, method, left)
			}
		}
	}
}
