package cinder_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// A PV may name the attachment of another volume, by mistake or by forgery. That volume keeps its
// export, and so does the PV's own, until the name is taken away.
func TestAttachmentOfAnotherVolumeIsNotDeleted(t *testing.T) {
	for _, release := range cindertest.Releases() {
		for _, status := range []string{"attached", "attaching", "error_attaching"} {
			keeper, server := start(t)
			server.SetRelease(release)
			id, other := server.AddNamed(wanted.Name, "available", owned(uid)), server.Add("available", owned("other"))
			server.Attach(id, "attached")
			server.Attach(other, status)
			ours, theirs := server.Attachments()[0], server.Attachments()[1]
			held := attach
			held.ID = theirs
			err := removeErr(t, keeper, volume.Target{UID: uid, ID: id, Noted: true, Access: held})
			if !volume.Is(err, volume.Misconfigured) || !strings.Contains(err.Error(), "attachment "+theirs+" belongs to volume "+other) || len(server.Attachments()) != 2 {
				t.Errorf("Cinder %d, %s: %v, attached %v", release, status, err, server.Attachments())
			}
			held.ID = ours
			if err := removeErr(t, keeper, volume.Target{UID: uid, ID: id, Noted: true, Access: held}); err != nil || !slices.Equal(server.Attachments(), []string{theirs}) {
				t.Errorf("Cinder %d, %s: %v, attached %v", release, status, err, server.Attachments())
			}
		}
	}
}

// Most attachments are shown by their volumes, and need no request of their own.
func TestAttachmentThatItsVolumeShowsIsNotAskedFor(t *testing.T) {
	keeper, server := start(t)
	_, held, err := keeper.Export(t.Context(), ensured(t, keeper), attach)
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	server.Gate = func(r *http.Request) cindertest.Fate {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/attachments") {
			asked = append(asked, r.URL.Path)
		}
		return cindertest.Answer
	}
	if err := removeErr(t, keeper, volume.Target{UID: uid, ID: server.Volumes()[0].ID, Noted: true, Access: held}); err != nil || len(asked) > 0 {
		t.Errorf("%v, asked for %v", err, asked)
	}
}

// The PV of a claim may be wrong, or forged: it names a volume that says nothing of a claim, or the
// attachment of another claim's volume. Neither is touched, and the claim's own volume can be
// removed once the PV is right, or names no attachment.
func TestPVThatNamesWhatIsAnothersRemovesNothing(t *testing.T) {
	onEachCinder(t, func(t *testing.T, login credentials.Login) {
		t.Helper()
		c := connect(t, login)
		keeper := keep(c)
		own, other, disk := spec(t, c), spec(t, c), spec(t, c)
		var all []volume.Volume
		var held []volume.Access
		for _, s := range []volume.Spec{own, other, disk} {
			v, _, err := keeper.Ensure(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			_, access := export(t, keeper, v, s)
			all, held = append(all, v), append(held, access)
		}
		if err := c.SetMetadata(t.Context(), all[2].ID, map[string]string{"name": "disk of a server"}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.SetMetadata(context.WithoutCancel(t.Context()), all[2].ID, disk.Metadata); err != nil {
				t.Errorf("clean up: %v", err)
			}
		})
		forged := held[0]
		forged.ID = held[1].ID
		refused := map[string]volume.Target{"a disk": {UID: own.UID, ID: all[2].ID, Noted: true, Access: held[2]}}
		if held[0].Method == cinder.Attachments {
			refused["an attachment"] = volume.Target{UID: own.UID, ID: all[0].ID, Noted: true, Access: forged}
		}
		for what, target := range refused {
			if err := removeErr(t, keeper, target); !volume.Is(err, volume.Misconfigured) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, v := range all {
			if now, err := c.Get(t.Context(), v.ID); err != nil || now.Status != "in-use" {
				t.Errorf("volume %s is %s, %v", v.ID, now.Status, err)
			}
		}
		forged.ID = ""
		if err := removeErr(t, keeper, volume.Target{UID: own.UID, ID: all[0].ID, Noted: true, Access: forged}); err != nil {
			t.Error(err)
		}
		if now, err := c.Get(t.Context(), all[1].ID); err != nil || now.Status != "in-use" {
			t.Errorf("the other claim's volume is %s, %v", now.Status, err)
		}
	})
}
