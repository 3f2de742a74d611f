package cinder_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/snapshots"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// A user of Cinder may make snapshots of a claim's volume while it is in use. It is deleted once they
// are.
func TestADeleteNamesTheSnapshotsThatItWaitsFor(t *testing.T) {
	onEachCinder(t, func(t *testing.T, login credentials.Login) {
		t.Helper()
		c := connect(t, login)
		s := spec(t, c)
		keeper := keep(c)
		v, _, err := keeper.Ensure(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		_, held := export(t, keeper, v, s)
		var made []string
		for range 4 {
			made = append(made, snapshot(t, c, v.ID))
		}
		target := volume.Target{UID: s.UID, ID: v.ID, Noted: true, Access: held}
		_, err = keeper.Remove(t.Context(), target)
		if !volume.Is(err, volume.Busy) || !strings.Contains(err.Error(), " and 1 more") || !strings.Contains(err.Error(), "openstack volume snapshot delete ") {
			t.Errorf("of %v: %v", made, err)
		}
		for _, id := range made[1:] {
			dropSnapshot(t, c, id)
		}
		if _, err = keeper.Remove(t.Context(), target); !volume.Is(err, volume.Busy) || !strings.Contains(err.Error(), "this one has "+made[0]+". An") {
			t.Errorf("of %v: %v", made, err)
		}
		dropSnapshot(t, c, made[0])
		if _, err = keeper.Remove(t.Context(), target); err != nil {
			t.Error(err)
		}
	})
}

// snapshot makes a snapshot of a volume in use, waits until Cinder has made it, and returns its ID.
func snapshot(t *testing.T, c *cinder.Cinder, volumeID string) string {
	t.Helper()
	made, err := snapshots.Create(t.Context(), c.API(), snapshots.CreateOpts{VolumeID: volumeID, Force: true}).Extract()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dropSnapshot(t, c, made.ID) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := snapshots.WaitForStatus(ctx, c.API(), made.ID, "available"); err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// dropSnapshot deletes a snapshot, and waits until it no longer exists.
func dropSnapshot(t *testing.T, c *cinder.Cinder, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	err := snapshots.Delete(ctx, c.API(), id).ExtractErr()
	for err == nil {
		if _, err = snapshots.Get(ctx, c.API(), id).Extract(); err == nil {
			err = wait(ctx, time.Second)
		}
	}
	if !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		t.Errorf("snapshot %s: %v", id, err)
	}
}
