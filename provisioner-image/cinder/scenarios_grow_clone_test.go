package cinder_test

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// A volume grows while it is exported, by either method, and its export stays.
func TestGrowKeepsTheExport(t *testing.T) {
	for _, api := range []volume.Method{cinder.Attachments, cinder.Reserve} {
		t.Run(string(api), func(t *testing.T) {
			onEachCinder(t, func(t *testing.T, login credentials.Login) { t.Helper(); testGrow(t, login, api) })
		})
	}
}

func testGrow(t *testing.T, login credentials.Login, api volume.Method) {
	t.Helper()
	c := connect(t, login)
	s := spec(t, c)
	s.Access.Method = api
	keeper := keep(c)
	v, _, err := keeper.Ensure(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if isRefused := attachmentsAreRefused(t, keeper, v, s); isRefused {
		return
	}
	before, held := export(t, keeper, v, s)
	for range 2 {
		grown, err := keeper.Grow(t.Context(), volume.Growth{Named: volume.Named{UID: s.UID, ID: v.ID, Access: held}, SizeGiB: 2})
		if err != nil || grown.SizeGiB != 2 {
			t.Fatalf("%+v, %v", grown, err)
		}
	}
	after, err := keeper.Reach(t.Context(), volume.Named{UID: s.UID, ID: v.ID, Access: held})
	if err != nil {
		t.Fatal(err)
	}
	var to target
	if err := after.Decode(&to); err != nil || to != before {
		t.Errorf("the export is %q at %q now, %v", to.IQN, to.Portal, err)
	}
	if now, err := c.Get(t.Context(), v.ID); err != nil || now.Status != "in-use" {
		t.Errorf("after it has grown the volume is %q, %v", now.Status, err)
	}
}

// Where no backend has room, Cinder's scheduler gives the volume its former status back, and says why
// only in a message. The volume keeps its export, and grows as far as there is room.
func TestGrowWithoutRoomSaysSo(t *testing.T) {
	for _, api := range []volume.Method{cinder.Auto, cinder.Reserve} {
		t.Run(string(api), func(t *testing.T) {
			onEachCinder(t, func(t *testing.T, login credentials.Login) {
				t.Helper()
				c := connect(t, login)
				s := spec(t, c)
				s.Access.Method = api
				keeper := keep(c)
				v, _, err := keeper.Ensure(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				_, held := export(t, keeper, v, s)
				growth := volume.Growth{Named: volume.Named{UID: s.UID, ID: v.ID, Access: held}, SizeGiB: 100_000}
				if grown, err := keeper.Grow(t.Context(), growth); !volume.Is(err, volume.Full) || !strings.Contains(err.Error(), "Could not find any available weighted backend") {
					t.Errorf("%+v, %v", grown, err)
				}
				growth.SizeGiB = 2
				if grown, err := keeper.Grow(t.Context(), growth); err != nil || grown.SizeGiB != 2 || grown.Status != "in-use" {
					t.Errorf("%+v, %v", grown, err)
				}
			})
		})
	}
}

// The source is exported while it is cloned, by either method.
func TestCloneOfVolumeInUse(t *testing.T) {
	for _, api := range []volume.Method{cinder.Auto, cinder.Reserve} {
		t.Run(string(api), func(t *testing.T) {
			onEachCinder(t, func(t *testing.T, login credentials.Login) { t.Helper(); testClone(t, login, api) })
		})
	}
}

func testClone(t *testing.T, login credentials.Login, api volume.Method) {
	t.Helper()
	c := connect(t, login)
	one, two := spec(t, c), spec(t, c)
	one.Access.Method, two.Access.Method = api, api
	keeper := keep(c)
	from, _, err := keeper.Ensure(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	_, held := export(t, keeper, from, one)
	two.Source = volume.Source{VolumeID: from.ID, UID: one.UID}
	if err := keeper.CheckSource(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	made, _, err := keeper.Ensure(t.Context(), two)
	if err != nil || made.ID == from.ID || made.UID() != two.UID {
		t.Fatalf("%+v, %v", made, err)
	}
	if now, err := c.Get(t.Context(), from.ID); err != nil || now.Status != "in-use" {
		t.Errorf("the source is %+v, %v", now, err)
	}
	_, heldToo := export(t, keeper, made, two)
	// The clone is removed before its source: some storages keep the source for it.
	for _, target := range []volume.Target{{UID: two.UID, ID: made.ID, Access: heldToo}, {UID: one.UID, ID: from.ID, Access: held}} {
		if _, err := keeper.Remove(t.Context(), target); err != nil {
			t.Error(err)
		}
	}
}

// A volume that an older image has left reserved cannot be cloned in any release, until it has
// grown.
func TestCloneOfAVolumeThatAnOlderImageReservedNeedsItToGrow(t *testing.T) {
	onEachCinder(t, func(t *testing.T, login credentials.Login) {
		t.Helper()
		c := connect(t, login)
		one, two := spec(t, c), spec(t, c)
		one.Access.Method, two.SizeGiB = cinder.Reserve, 2
		keeper := keep(c)
		from, _, err := keeper.Ensure(t.Context(), one)
		if err == nil {
			err = c.Reserve(t.Context(), from.ID)
		}
		if err == nil {
			_, err = c.Initialize(t.Context(), from.ID, one.Access.Client)
		}
		if err != nil {
			t.Fatal(err)
		}
		two.Source = volume.Source{VolumeID: from.ID, UID: one.UID}
		if made, _, err := keeper.Ensure(t.Context(), two); !volume.Is(err, volume.Unsuitable) || !strings.Contains(err.Error(), "grow the source") {
			t.Errorf("%+v, %v", made, err)
		}
		if _, err := keeper.Grow(t.Context(), volume.Growth{Named: volume.Named{UID: one.UID, ID: from.ID, Access: one.Access}, SizeGiB: 2}); err != nil {
			t.Fatal(err)
		}
		if made, _, err := keeper.Ensure(t.Context(), two); err != nil || made.UID() != two.UID {
			t.Errorf("%+v, %v", made, err)
		}
		if _, err := keeper.Remove(t.Context(), volume.Target{UID: two.UID, Name: two.Name, Access: two.Access}); err != nil {
			t.Error(err)
		}
	})
}

// Cinder says of each volume what it was cloned from, also when the source no longer exists. So a
// volume of an earlier request is not used, whichever image created it.
func TestVolumeOfAnEarlierRequestIsNotUsed(t *testing.T) {
	onEachCinder(t, func(t *testing.T, login credentials.Login) {
		t.Helper()
		c := connect(t, login)
		keeper := keep(c)
		ensure := func(s volume.Spec) (volume.Volume, error) {
			v, _, err := keeper.Ensure(t.Context(), s)
			return v, err
		}
		one, empty := spec(t, c), spec(t, c)
		from, err := ensure(one)
		if err != nil {
			t.Fatal(err)
		}
		clone := spec(t, c)
		clone.Source = volume.Source{VolumeID: from.ID, UID: one.UID}
		made, err := ensure(clone)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := keeper.Remove(t.Context(), volume.Target{UID: one.UID, Name: one.Name, Access: one.Access}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Get(t.Context(), from.ID); !volume.Is(err, volume.Gone) {
			t.Errorf("the source still exists: %v", err)
		}
		if v, err := ensure(clone); err != nil || v.ID != made.ID {
			t.Errorf("the same request gets %+v, %v", v, err)
		}
		clone.Source = volume.Source{}
		if v, err := ensure(clone); !volume.Is(err, volume.Unsuitable) || !strings.Contains(err.Error(), "it is a clone of "+from.ID+", and an empty volume is requested") {
			t.Errorf("a request without a source gets %+v, %v", v, err)
		}
		if _, err := ensure(empty); err != nil {
			t.Fatal(err)
		}
		empty.Source = volume.Source{VolumeID: made.ID, UID: clone.UID}
		if v, err := ensure(empty); !volume.Is(err, volume.Unsuitable) || !strings.Contains(err.Error(), "it is an empty volume, and a clone of "+made.ID+" is requested") {
			t.Errorf("a request for a clone gets %+v, %v", v, err)
		}
	})
}
