package cinder_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/cindertest"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Cinder was killed between the two writes that create an attachment. The next run exports the volume, or removes it.
func TestAVolumeThatIsReservedWithoutAnAttachmentIsFreed(t *testing.T) {
	for _, api := range []volume.Method{cinder.Auto, cinder.Reserve} {
		t.Run(string(api), func(t *testing.T) {
			onEachCinder(t, func(t *testing.T, login credentials.Login) {
				t.Helper()
				if login.AuthURL == "" { // only an administrator resets a status
					testFreed(t, login, api)
				}
			})
		})
	}
}

func testFreed(t *testing.T, login credentials.Login, api volume.Method) {
	t.Helper()
	c := connect(t, login)
	keeper := volume.NewKeeper(cinder.NewBackend(c, wait), wait)
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

// leaveReserved makes the claim's volume what Cinder leaves that was killed.
func leaveReserved(t *testing.T, login credentials.Login, c *cinder.Cinder, uid string) {
	t.Helper()
	found, err := c.Find(t.Context(), uid)
	if err != nil || len(found) != 1 {
		t.Fatalf("%d volumes, %v", len(found), err)
	}
	status, said := replay(t, login.Endpoint, captured{
		Method: http.MethodPost, Path: hexProject + "/volumes/" + found[0].ID + "/action",
		Body: json.RawMessage(`{"os-reset_status":{"status":"reserved"}}`),
	}, nil)
	if now, err := c.Get(t.Context(), found[0].ID); err != nil || now.Status != "reserved" {
		t.Fatalf("%d %v: the volume is %s, %v", status, said, now.Status, err)
	}
}

// A volume has no attachment for the moment between the two writes that create one. Cinder may execute the request of a run that was killed.
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

// What a server holds is not freed, nor what another client does.
func TestAReservedVolumeOfAnotherClientIsNotFreed(t *testing.T) {
	for whom, attachAs := range map[string]func(s *cindertest.Server, id string){
		"a server":       func(s *cindertest.Server, id string) { s.AttachServer(id, "vm-1") },
		"another client": func(s *cindertest.Server, id string) { s.Attach(id, "reserved") },
	} {
		for _, method := range []volume.Method{cinder.Attachments, cinder.Reserve} {
			keeper, server := start(t)
			id := server.AddNamed(wanted.Name, "reserved", owned(uid))
			attachAs(server, id)
			server.SetStatus(id, "reserved")
			held, did := volume.Access{Method: method, Client: connector, ID: "gone"}, actions(server)
			err := removeErr(t, keeper, volume.Target{UID: uid, ID: id, Noted: true, Access: held})
			if err == nil || len(server.Attachments()) != 1 || slices.Contains(*did, "os-detach") {
				t.Errorf("%s, %s: %v after %q, attached %v", whom, method, err, *did, server.Attachments())
			}
		}
	}
}
