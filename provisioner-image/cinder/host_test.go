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

// actions notes the name of every action of a volume from now on.
func actions(server *cindertest.Server) *[]string {
	var all []string
	server.Gate = func(r *http.Request) cindertest.Fate {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/action") {
			body, _ := io.ReadAll(r.Body)
			all = append(all, strings.SplitN(string(body), `"`, 3)[1])
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		return cindertest.Answer
	}
	return &all
}

// ensured returns the claim's volume as a run finds it.
func ensured(t *testing.T, k *volume.Keeper) volume.Volume {
	t.Helper()
	v, _, err := k.Ensure(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A run can be killed after each of its requests, and the next one does not repeat what Cinder
// refuses then.
func TestReserveIsCompletedFromWhereARunLeftIt(t *testing.T) {
	all := []string{"os-reserve", "os-initialize_connection", "os-attach"}
	for name, tc := range map[string]struct {
		left func(s *cindertest.Server, id string)
		want []string
	}{
		"available": {func(*cindertest.Server, string) {}, all},
		"reserved":  {func(s *cindertest.Server, id string) { s.LeaveReserved(id) }, all[1:]},
		"attached":  {func(s *cindertest.Server, id string) { s.AttachHost(id, "", body.MountPoint) }, all[1:2]},
	} {
		keeper, server := start(t)
		tc.left(server, ensured(t, keeper).ID)
		v := ensured(t, keeper)
		did := actions(server)
		if _, _, err := keeper.Export(t.Context(), v, reserve); err != nil || !slices.Equal(*did, tc.want) {
			t.Errorf("%s: %v after %q, want %q", name, err, *did, tc.want)
		}
		if got := server.Volumes()[0]; got.Status != "in-use" || !got.Exported || len(server.Attachments()) != 1 {
			t.Errorf("%s: left %+v, attached %v", name, got, server.Attachments())
		}
	}
}

// The export, the attachment and the reservation end in this order, whatever of them there is.
func TestRemoveReleasesWhatTheHostHolds(t *testing.T) {
	all := []string{"os-terminate_connection", "os-detach", "os-unreserve"}
	for name, tc := range map[string]struct {
		left func(s *cindertest.Server, id string)
		want []string
	}{
		"attached":           {func(*cindertest.Server, string) {}, all},
		"reserved":           {func(s *cindertest.Server, id string) { s.LeaveReserved(id) }, []string{all[0], all[2]}},
		"failed to attach":   {func(s *cindertest.Server, id string) { s.LeaveReserved(id); s.SetStatus(id, "error_attaching") }, all},
		"failed to extend":   {func(s *cindertest.Server, id string) { s.SetStatus(id, "error_extending") }, all},
		"reserved and so on": {func(s *cindertest.Server, id string) { s.SetStatus(id, "attaching") }, all},
	} {
		for _, release := range cindertest.Releases() {
			keeper, server := start(t)
			server.SetRelease(release)
			held := exportTwice(t, keeper, reserve)
			id := server.Volumes()[0].ID
			tc.left(server, id)
			did := actions(server)
			if _, err := keeper.Remove(t.Context(), volume.Target{UID: uid, ID: id, Noted: true, Access: held}); err != nil || !slices.Equal(*did, tc.want) {
				t.Errorf("Cinder %d, %s: %v after %q, want %q", release, name, err, *did, tc.want)
			}
			if ids(server) != "" || len(server.Attachments()) != 0 {
				t.Errorf("Cinder %d, %s: left %s, attached %v", release, name, ids(server), server.Attachments())
			}
		}
	}
}

// Neither is its export removed, nor what others have attached.
func TestReserveRefusesAVolumeThatAnotherClientHasAttached(t *testing.T) {
	for whom, attach := range map[string]func(s *cindertest.Server, id string){
		"server vm-1":       func(s *cindertest.Server, id string) { s.AttachServer(id, "vm-1") },
		"host backup":       func(s *cindertest.Server, id string) { s.AttachHost(id, "Backup", "/mnt") },
		"another client":    func(s *cindertest.Server, id string) { s.AttachHost(id, "", "/dev/sdb") },
		"an unknown client": func(s *cindertest.Server, id string) { s.SetStatus(id, "in-use") },
	} {
		keeper, server := start(t)
		v := ensured(t, keeper)
		attach(server, v.ID)
		v.Status = "in-use"
		attached, did := len(server.Attachments()), actions(server)
		a := reserve
		a.Client.Host = "nodes"
		_, _, err := keeper.Export(t.Context(), v, a)
		removal := removeErr(t, keeper, volume.Target{UID: uid, ID: v.ID, Noted: true, Access: a})
		for doing, err := range map[string]error{"export": err, "remove": removal} {
			if !volume.Is(err, volume.Busy) || !strings.Contains(err.Error(), whom+" uses it") {
				t.Errorf("%s, %s: %v", whom, doing, err)
			}
		}
		if len(*did) > 0 || len(server.Attachments()) != attached || !strings.HasSuffix(ids(server), ":in-use") {
			t.Errorf("%s: %q, left %s", whom, *did, ids(server))
		}
	}
}

// Cinder keeps the host's name in its own form, and shows it only to administrators. The volume is
// found again all the same, also by an undo, which knows no more than the claim.
func TestVolumeOfTheHostIsRecognizedByWhatCinderShowsOfIt(t *testing.T) {
	for _, api := range []volume.Method{cinder.Reserve, cinder.Auto} {
		for _, host := range []string{"", "flex-8d5a6f3c", "Kube_Nodes (1).", "nodes.Example.COM"} {
			for _, hides := range []bool{false, true} {
				keeper, server := start(t)
				server.SetRelease(17)
				server.HidesHosts = hides
				a := volume.Access{Method: api, Client: connector}
				a.Client.Host = host
				exportTwice(t, keeper, a)
				left, err := keeper.Remove(t.Context(), volume.Target{UID: uid, Name: wanted.Name, Access: a, Undo: true})
				if err != nil || len(left) > 0 || ids(server) != "" {
					t.Errorf("%s, host %q, hidden %t: %v, left %v of %s", api, host, hides, err, left, ids(server))
				}
			}
		}
	}
}

// The volume shows that it is attached.
func TestAttachToTheHostIsNotRepeatedAfterALostAnswer(t *testing.T) {
	keeper, server := start(t)
	v := ensured(t, keeper)
	attaches := 0
	server.Gate = func(r *http.Request) cindertest.Fate {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte("os-attach")) {
			attaches++
			return cindertest.DropAnswer
		}
		return cindertest.Answer
	}
	if _, _, err := keeper.Export(t.Context(), v, reserve); err != nil || attaches != 1 || len(server.Attachments()) != 1 {
		t.Errorf("%v after %d requests, attached %v", err, attaches, server.Attachments())
	}
}

// Cinder attaches a volume that is marked as read-only in no other mode.
func TestReadOnlyVolumeIsAttachedAsSuch(t *testing.T) {
	keeper, server := start(t)
	metadata := owned(uid)
	metadata["readonly"] = "True"
	server.AddNamed(wanted.Name, "available", metadata)
	if _, _, err := keeper.Export(t.Context(), ensured(t, keeper), reserve); err != nil || ids(server) != "00000001:in-use" {
		t.Errorf("%v, left %s", err, ids(server))
	}
}

// The nodes use the export meanwhile.
func TestGrowOfAVolumeOfTheHostDoesNotDetachIt(t *testing.T) {
	for _, release := range cindertest.Releases() {
		keeper, server := start(t)
		server.SetRelease(release)
		held := exportTwice(t, keeper, reserve)
		before, did := server.Attachments(), actions(server)
		grown, err := keeper.Grow(t.Context(), volume.Growth{Named: volume.Named{UID: uid, ID: server.Volumes()[0].ID, Access: held}, SizeGiB: 2})
		if err != nil || grown.SizeGiB != 2 || !slices.Equal(server.Attachments(), before) {
			t.Errorf("Cinder %d: %+v, %v, attached %v", release, grown, err, server.Attachments())
		}
		if want := []string{"os-extend", "os-initialize_connection"}; !slices.Equal(*did, want) {
			t.Errorf("Cinder %d: %q, want %q", release, *did, want)
		}
	}
}

// Cinder extends no volume that is only reserved. It is attached afterwards, and an initiator
// learns of the new size.
func TestGrowOfAVolumeThatAnOlderImageReservedAttachesIt(t *testing.T) {
	for _, release := range cindertest.Releases() {
		keeper, server := start(t)
		server.SetRelease(release)
		held := exportTwice(t, keeper, reserve)
		id := server.Volumes()[0].ID
		server.LeaveReserved(id)
		did := actions(server)
		for range 2 {
			grown, err := keeper.Grow(t.Context(), volume.Growth{Named: volume.Named{UID: uid, ID: id, Access: held}, SizeGiB: 2})
			if v := server.Volumes()[0]; err != nil || grown.SizeGiB != 2 || v.Status != "in-use" || !v.Exported {
				t.Errorf("Cinder %d: %+v, %v, left %+v", release, grown, err, v)
			}
		}
		want := []string{"os-unreserve", "os-extend", "os-reserve", "os-initialize_connection", "os-attach", "os-initialize_connection"}
		if !slices.Equal(*did, want) {
			t.Errorf("Cinder %d: %q, want %q", release, *did, want)
		}
	}
}
