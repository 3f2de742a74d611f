package cinder_test

import (
	"crypto/rand"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// An existing volume becomes a claim's, is listed with the cluster's volumes, and loses the claim's
// marks again.
func TestAdoptedVolumeIsListedAndReturned(t *testing.T) {
	onEachCinder(t, func(t *testing.T, login credentials.Login) {
		t.Helper()
		c := connect(t, login)
		keeper := keep(c)
		old := spec(t, c)
		there, _, err := keeper.Ensure(t.Context(), old)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetMetadata(t.Context(), there.ID, map[string]string{"kept": "yes"}); err != nil {
			t.Fatal(err)
		}
		s := spec(t, c)
		s.Adopt, s.Cluster = there.ID, rand.Text()
		s.Metadata[volume.KeyCluster] = s.Cluster
		v, _, err := keeper.Ensure(t.Context(), s)
		if err != nil || v.ID != there.ID {
			t.Fatalf("%+v, %v", v, err)
		}
		all, err := keeper.List(t.Context(), s.Cluster)
		if err != nil || len(all) != 1 || all[0].ID != v.ID || all[0].Metadata["kept"] != "yes" {
			t.Errorf("listed %v, %v", all, err)
		}
		anywhere, err := keeper.List(t.Context(), "")
		if err != nil || !slices.ContainsFunc(anywhere, func(o volume.Volume) bool { return o.ID == v.ID }) {
			t.Errorf("listed %d, %v", len(anywhere), err)
		}
		_, held := export(t, keeper, v, s)
		if _, err := keeper.Remove(t.Context(), volume.Target{UID: s.UID, ID: v.ID, Access: held, Undo: true}); err != nil {
			t.Error(err)
		}
		if back, err := c.Get(t.Context(), there.ID); err != nil || back.UID() != "" || back.Status != "available" {
			t.Errorf("given back as %+v, %v", back, err)
		}
		if err := c.SetMetadata(t.Context(), there.ID, old.Metadata); err != nil { // the test's clean-up finds it by that
			t.Error(err)
		}
	})
}

// The volume of a claim that is deleted, and whose PV is retained, becomes another claim's with a new
// export. The old one has ended then.
func TestTheVolumeOfARetainedPVIsExportedAnew(t *testing.T) {
	for _, api := range []volume.Method{cinder.Auto, cinder.Reserve} {
		t.Run(string(api), func(t *testing.T) {
			onEachCinder(t, func(t *testing.T, login credentials.Login) {
				t.Helper()
				c := connect(t, login)
				keeper := keep(c)
				before, s := spec(t, c), spec(t, c)
				before.Access.Method, s.Access.Method = api, api
				there, _, err := keeper.Ensure(t.Context(), before)
				if err != nil {
					t.Fatal(err)
				}
				_, old := export(t, keeper, there, before)
				s.Adopt, s.Former = there.ID, volume.Former{UID: before.UID, Access: old}
				v, _, err := keeper.Ensure(t.Context(), s)
				if err != nil || v.ID != there.ID || v.UID() != s.UID || v.Status != "available" {
					t.Fatalf("%+v, %v", v, err)
				}
				_, held := export(t, keeper, v, s)
				if now, err := c.Get(t.Context(), v.ID); err != nil || now.Status != "in-use" || old.ID != "" && held.ID == old.ID {
					t.Errorf("%+v, %v, exported by %+v, before by %+v", now, err, held, old)
				}
				if _, err := keeper.Remove(t.Context(), volume.Target{UID: s.UID, ID: v.ID, Noted: true, Access: held}); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What another provisioner has reserved or attached stays its own, until an administrator has detached
// it. A member of the project may do so.
func TestAVolumeOfAnotherProvisionerIsAdoptedOnceItIsDetached(t *testing.T) {
	for name, tc := range map[string]struct {
		take func(*testing.T, *cinder.Cinder, volume.Spec, string) (detach func() error)
		says string
	}{
		"reserved and exported, as standalone-cinder leaves it": {reserveAndExport, `its status is "attaching", not available. Its user`},
		"attached without a server":                             {attachWithoutServer, `its status is "in-use", not available (`},
	} {
		t.Run(name, func(t *testing.T) {
			onEachCinder(t, func(t *testing.T, login credentials.Login) {
				t.Helper()
				if os.Getenv(releaseEnv) == "17" && tc.says != `its status is "attaching", not available. Its user` {
					return // it attaches to servers only
				}
				c := connect(t, login)
				keeper := keep(c)
				there, err := c.Create(t.Context(), volume.Spec{Name: "theirs", SizeGiB: 1})
				if err == nil {
					there, err = cinder.NewBackend(c, wait).Ready(t.Context(), there, volume.Access{})
				}
				if err != nil {
					t.Fatal(err)
				}
				s := spec(t, c)
				s.Adopt = there.ID
				detach := tc.take(t, c, s, there.ID)
				if v, _, err := keeper.Ensure(t.Context(), s); !volume.Is(err, volume.Unsuitable) || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%+v, %v", v, err)
				}
				if err := detach(); err != nil {
					t.Fatal(err)
				}
				if v, _, err := keeper.Ensure(t.Context(), s); err != nil || v.ID != there.ID || v.UID() != s.UID {
					t.Errorf("%+v, %v", v, err)
				}
				if _, err := keeper.Remove(t.Context(), volume.Target{UID: s.UID, ID: there.ID, Noted: true, Access: s.Access}); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func reserveAndExport(t *testing.T, c *cinder.Cinder, s volume.Spec, id string) func() error {
	t.Helper()
	err := c.Reserve(t.Context(), id)
	if err == nil {
		_, err = c.Initialize(t.Context(), id, s.Access.Client)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() error {
		return errors.Join(c.Terminate(t.Context(), id, s.Access.Client), c.Unreserve(t.Context(), id))
	}
}

func attachWithoutServer(t *testing.T, c *cinder.Cinder, s volume.Spec, id string) func() error {
	t.Helper()
	made, err := c.Attach(t.Context(), id)
	if err == nil {
		_, err = c.Connect(t.Context(), made.ID, s.Access.Client)
	}
	if err == nil {
		err = c.Complete(t.Context(), made.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() error { return c.Detach(t.Context(), made.ID) }
}
