package cinder_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/body"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// Cinder was killed between the two writes that create an attachment. The next run exports the
// volume, or removes it.
func TestAVolumeThatIsReservedWithoutAnAttachmentIsFreed(t *testing.T) {
	for _, api := range []volume.Method{cinder.Auto, cinder.Reserve} {
		t.Run(string(api), func(t *testing.T) {
			onCindersWithReset(t, cindertest.Releases(), func(t *testing.T, login credentials.Login) {
				t.Helper()
				testFreed(t, login, api)
			})
		})
	}
}

func testFreed(t *testing.T, login credentials.Login, api volume.Method) {
	t.Helper()
	c := connect(t, login)
	keeper := keep(c)
	kept, removed := spec(t, c), spec(t, c)
	for _, s := range []*volume.Spec{&kept, &removed} {
		s.Access.Method = api
		if _, _, err := keeper.Ensure(t.Context(), *s); err != nil {
			t.Fatal(err)
		}
		leaveReserved(t, login, c, s.UID)
	}
	v, _, err := keeper.Ensure(t.Context(), kept)
	if err != nil {
		t.Fatal(err)
	}
	if to, _ := export(t, keeper, v, kept); to.IQN == "" {
		t.Errorf("the connection is %+v", to)
	}
	if now, err := c.Get(t.Context(), v.ID); err != nil || now.Status != "in-use" {
		t.Errorf("after its export the volume is %s, %v", now.Status, err)
	}
	if _, err := keeper.Remove(t.Context(), volume.Target{UID: removed.UID, Name: removed.Name, Access: removed.Access}); err != nil {
		t.Error(err)
	}
	if left, err := c.Find(t.Context(), removed.UID); err != nil || len(left) > 0 {
		t.Errorf("left %+v, %v", left, err)
	}
}

// leaveReserved leaves the claim's volume as a killed Cinder does.
func leaveReserved(t *testing.T, login credentials.Login, c *cinder.Cinder, uid string) {
	t.Helper()
	found, err := c.Find(t.Context(), uid)
	if err != nil || len(found) != 1 {
		t.Fatalf("%d volumes, %v", len(found), err)
	}
	reset(t, login, c, found[0].ID, "reserved")
}

// reset sets a volume's status, as an administrator.
func reset(t *testing.T, login credentials.Login, c *cinder.Cinder, id, status string) {
	t.Helper()
	code, said := replay(t, login.Endpoint, captured{
		Method: http.MethodPost, Path: hexProject + "/volumes/" + id + "/action",
		Body: json.RawMessage(`{"os-reset_status":{"status":"` + status + `"}}`),
	}, nil)
	if now, err := c.Get(t.Context(), id); err != nil || now.Status != status {
		t.Fatalf("%d %v: the volume is %s, %v", code, said, now.Status, err)
	}
}

// A volume has no attachment for the moment between the two writes that create one. Cinder may
// execute the request of a run that was killed.
func TestAReservedVolumeWhoseAttachmentAppearsLateIsNotFreed(t *testing.T) {
	server := cindertest.New()
	t.Cleanup(server.Close)
	id := server.AddNamed(wanted.Name, "reserved", owned(uid))
	appears := func(ctx context.Context, d time.Duration) error {
		if d > 0 && len(server.Attachments()) == 0 {
			server.Attach(id, "reserved")
		}
		return ctx.Err()
	}
	c := connect(t, credentials.Login{Endpoint: server.Endpoint()})
	keeper := volume.NewKeeper(cinder.NewBackend(c, appears), appears)
	did := actions(server)
	connection, held, err := keeper.Export(t.Context(), ensured(t, keeper), attach)
	if err != nil || connection.Kind != "iscsi" || !slices.Equal(server.Attachments(), []string{held.ID}) {
		t.Errorf("%v, held by %+v, attached %v", err, held, server.Attachments())
	}
	if slices.Contains(*did, "os-detach") {
		t.Errorf("requests %q", *did)
	}
}

// A reserved volume that someone else holds is neither freed, nor exported by the older workflow.
func TestAReservedVolumeThatSomeoneElseHoldsIsNotFreed(t *testing.T) {
	for whom, attachAs := range map[string]func(t *testing.T, s *cindertest.Server, id string){
		"a server":                    func(_ *testing.T, s *cindertest.Server, id string) { s.AttachServer(id, "vm-1") },
		"another client":              func(_ *testing.T, s *cindertest.Server, id string) { s.Attach(id, "attached") },
		"a client that is connecting": connecting,
	} {
		for _, method := range []volume.Method{cinder.Attachments, cinder.Reserve} {
			keeper, server := start(t)
			id := server.AddNamed(wanted.Name, "available", owned(uid))
			attachAs(t, server, id)
			server.SetStatus(id, "reserved")
			held, did := volume.Access{Method: method, Client: connector, ID: "gone"}, actions(server)
			if method == cinder.Reserve {
				if _, _, err := keeper.Export(t.Context(), volume.Volume{ID: id, Status: "reserved"}, held); err == nil {
					t.Errorf("%s: exported after %q", whom, *did)
				}
			}
			err := removeErr(t, keeper, volume.Target{UID: uid, ID: id, Noted: true, Access: held})
			if err == nil || len(server.Attachments()) != 1 || slices.Contains(*did, "os-detach") {
				t.Errorf("%s, %s: %v after %q, attached %v", whom, method, err, *did, server.Attachments())
			}
		}
	}
}

// connecting connects an attachment of another client, which has not completed it.
func connecting(t *testing.T, s *cindertest.Server, id string) {
	t.Helper()
	c := connect(t, credentials.Login{Endpoint: s.Endpoint()})
	one, err := c.Attach(t.Context(), id)
	if err == nil {
		_, err = c.Connect(t.Context(), one.ID, connector)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The older workflow would export a volume that another client is connecting to.
func TestReserveRefusesAVolumeThatAnotherClientIsConnectingTo(t *testing.T) {
	for _, isSeen := range []bool{true, false} {
		keeper, server := start(t)
		v := ensured(t, keeper)
		connecting(t, server, v.ID)
		if isSeen {
			v = ensured(t, keeper)
		}
		did := actions(server)
		_, _, err := keeper.Export(t.Context(), v, reserve)
		if !volume.Is(err, volume.Busy) || slices.Contains(*did, "os-initialize_connection") {
			t.Errorf("seen %t: %v after %q", isSeen, err, *did)
		}
	}
}

// A run at work has an attachment that is not finished, for a moment.
func TestAnAttachmentThatIsFinishedMeanwhileStays(t *testing.T) {
	server := cindertest.New()
	t.Cleanup(server.Close)
	c := connect(t, credentials.Login{Endpoint: server.Endpoint()})
	id := server.AddNamed(wanted.Name, "available", owned(uid))
	server.AttachHost(id, "nodes", body.MountPoint)
	server.DieAttaching()
	all := server.Attachments()
	finish := func(ctx context.Context, d time.Duration) error {
		if d > 0 {
			return c.Complete(ctx, all[0])
		}
		return nil
	}
	keeper := volume.NewKeeper(cinder.NewBackend(c, finish), finish)
	_, _, err := keeper.Export(t.Context(), ensured(t, keeper), reserve)
	if got := server.Attachments(); !slices.Equal(got, all) {
		t.Errorf("%v, attached %v, before %v", err, got, all)
	}
}

// A Cinder without attachments is not asked for any.
func TestAReservationIsCompletedAndEndedWithoutAttachments(t *testing.T) {
	for _, isExported := range []bool{true, false} {
		keeper, server := start(t)
		server.MaxMicro = 0
		id := ensured(t, keeper).ID
		server.LeaveReserved(id)
		if isExported {
			if _, _, err := keeper.Export(t.Context(), ensured(t, keeper), reserve); err != nil {
				t.Error(err)
			}
		}
		if err := removeErr(t, keeper, volume.Target{UID: uid, ID: id, Noted: true, Access: reserve}); err != nil || ids(server) != "" {
			t.Errorf("exported %t: %v, left %s", isExported, err, ids(server))
		}
	}
}

// A Cinder that hangs may create the attachment of a killed run late: the next run has freed the
// volume and attached it by then. That attachment holds up neither the next export nor the removal.
func TestAnAttachmentThatCinderMadeLateIsEnded(t *testing.T) {
	for _, isRecorded := range []bool{true, false} {
		keeper, server := start(t)
		s := wanted
		s.Access = attach
		v, _, err := keeper.Ensure(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		server.Attach(v.ID, "reserved") // has the lower ID
		server.SetStatus(v.ID, "available")
		server.Attach(v.ID, "attached")
		v.Status = "in-use"
		_, held, err := keeper.Export(t.Context(), v, attach)
		if all := server.Attachments(); err != nil || len(all) != 2 || held.ID != all[1] {
			t.Errorf("%v, held by %+v, attached %v", err, held, all)
		}
		target := volume.Target{UID: uid, ID: v.ID, Noted: true, Access: held}
		if !isRecorded {
			target = volume.Target{UID: uid, Name: s.Name, Undo: true, Access: attach}
		}
		if _, err := keeper.Remove(t.Context(), target); err != nil || ids(server) != "" {
			t.Errorf("recorded %t: %v, left %s, attached %v", isRecorded, err, ids(server), server.Attachments())
		}
	}
}

// TestAnAttachmentThatCinderMadeLateIsEnded on each Cinder that makes attachments without a server.
func TestAVolumeWithAnAttachmentThatCinderMadeLateIsRemoved(t *testing.T) {
	if os.Getenv(releaseEnv) == "17" {
		t.Setenv("FLEX_TEST_CINDER", "")
	}
	onCindersWithReset(t, []int{21, 26, 28, 29}, func(t *testing.T, login credentials.Login) {
		t.Helper()
		c := connect(t, login)
		keeper := keep(c)
		s := spec(t, c)
		s.Access.Method = cinder.Attachments
		v, _, err := keeper.Ensure(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		_, held := export(t, keeper, v, s)
		reset(t, login, c, v.ID, "available")
		if _, err := c.Attach(t.Context(), v.ID); err != nil {
			t.Fatal(err)
		}
		reset(t, login, c, v.ID, "in-use")
		if _, err := keeper.Remove(t.Context(), volume.Target{UID: s.UID, ID: v.ID, Noted: true, Access: held}); err != nil {
			t.Error(err)
		}
		if left, err := c.Find(t.Context(), s.UID); err != nil || len(left) > 0 {
			t.Errorf("left %+v, %v", left, err)
		}
	})
}

// Cinder was killed after it had begun an attachment to the host, and before it had finished it. It
// shows such an attachment in no volume.
func TestAnAttachmentToTheHostThatCinderDidNotFinishIsEnded(t *testing.T) {
	for _, release := range cindertest.Releases() {
		for _, method := range []volume.Method{cinder.Reserve, cinder.Auto} {
			for _, isExported := range []bool{true, false} {
				keeper, server := start(t)
				server.SetRelease(release)
				access := volume.Access{Method: method, Client: connector}
				server.AttachHost(ensured(t, keeper).ID, "", body.MountPoint)
				server.DieAttaching()
				v := ensured(t, keeper)
				target := volume.Target{UID: uid, Name: wanted.Name, Undo: true, Access: access}
				if isExported {
					_, held, err := keeper.Export(t.Context(), v, access)
					if got := server.Volumes()[0]; err != nil || got.Status != "in-use" || len(server.Attachments()) != 1 {
						t.Errorf("Cinder %d, %s: %v, %+v, attached %v", release, method, err, got, server.Attachments())
					}
					target = volume.Target{UID: uid, ID: v.ID, Noted: true, Access: held}
				}
				did := actions(server)
				if _, err := keeper.Remove(t.Context(), target); err != nil || ids(server) != "" {
					t.Errorf("Cinder %d, %s, exported %t: %v, left %s, attached %v", release, method, isExported, err, ids(server), server.Attachments())
				}
				if method == cinder.Reserve && !slices.Contains(*did, "os-terminate_connection") {
					t.Errorf("Cinder %d, exported %t: the export stays after %q", release, isExported, *did)
				}
			}
		}
	}
}

// Cinder refuses to end the export of a volume with two attachments.
func TestAnAttachmentThatCinderDidNotFinishBesideOursIsEnded(t *testing.T) {
	for _, release := range cindertest.Releases() {
		keeper, server := start(t)
		server.SetRelease(release)
		held := exportTwice(t, keeper, reserve)
		id := server.Volumes()[0].ID
		server.AttachHost(id, "", body.MountPoint)
		server.DieAttaching()
		server.SetStatus(id, "in-use")
		if err := removeErr(t, keeper, volume.Target{UID: uid, ID: id, Noted: true, Access: held}); err != nil || ids(server) != "" {
			t.Errorf("Cinder %d: %v, left %s, attached %v", release, err, ids(server), server.Attachments())
		}
	}
}

// A server that has just reserved the volume would write to it, too.
func TestReserveRefusesAVolumeThatAServerHasReserved(t *testing.T) {
	for _, status := range []string{"reserved", "attaching"} {
		for _, isSeen := range []bool{true, false} {
			keeper, server := start(t)
			v := ensured(t, keeper)
			server.AttachServer(v.ID, "vm-1")
			server.SetStatus(v.ID, status)
			if isSeen {
				v.Status = status
			}
			did := actions(server)
			_, _, err := keeper.Export(t.Context(), v, reserve)
			if err == nil || slices.Contains(*did, "os-attach") || slices.Contains(*did, "os-initialize_connection") || len(server.Attachments()) != 1 {
				t.Errorf("%s, seen %t: %v after %q", status, isSeen, err, *did)
			}
		}
	}
}
