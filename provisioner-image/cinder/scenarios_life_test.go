package cinder_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// releaseEnv holds the release of the Cinder that a test meets, as its first number.
const releaseEnv = "FLEX_TEST_CINDER_RELEASE"

// onEachCinder runs a test on a fake Cinder of each release and, if FLEX_TEST_CINDER names an
// openrc file, on the real one.
func onEachCinder(t *testing.T, test func(t *testing.T, login credentials.Login)) {
	t.Helper()
	onCinders(t, cindertest.Releases(), test)
}

// onCinders is onEachCinder with fewer fakes, for a test that takes long.
func onCinders(t *testing.T, fakes []int, test func(t *testing.T, login credentials.Login)) {
	t.Helper()
	onFakes(t, fakes, func(*cindertest.Server) {}, test)
	if openrc := os.Getenv("FLEX_TEST_CINDER"); openrc != "" {
		t.Run("real", func(t *testing.T) { test(t, readOpenrc(t, openrc)) })
	}
}

// onFakes runs a test on fakes of these releases, each set up.
func onFakes(t *testing.T, releases []int, setUp func(*cindertest.Server), test func(t *testing.T, login credentials.Login)) {
	t.Helper()
	for _, release := range releases {
		t.Run(fmt.Sprintf("fake %d", release), func(t *testing.T) {
			server := cindertest.NewRelease(release)
			t.Cleanup(server.Close)
			server.Quota = 30
			setUp(server)
			t.Setenv(releaseEnv, strconv.Itoa(release))
			test(t, credentials.Login{Endpoint: server.Endpoint(), Project: "admin"})
		})
	}
}

// onCindersWithReset is onCinders for a test that resets a status, as an administrator does. The
// real one takes part where it has no keystone: there every login is an administrator's.
func onCindersWithReset(t *testing.T, fakes []int, test func(t *testing.T, login credentials.Login)) {
	t.Helper()
	if openrc := os.Getenv("FLEX_TEST_CINDER"); openrc != "" && readOpenrc(t, openrc).AuthURL != "" {
		t.Setenv("FLEX_TEST_CINDER", "")
	}
	onCinders(t, fakes, test)
}

func readOpenrc(t *testing.T, path string) credentials.Login {
	t.Helper()
	login, err := credentials.FromEnv(cindertest.ReadOpenrc(t, path), os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	return login
}

func connect(t *testing.T, login credentials.Login) *cinder.Cinder {
	t.Helper()
	c, err := cinder.Connect(t.Context(), login, http.Client{Timeout: time.Minute}, wait)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// keep returns a Keeper of the Cinder's volumes.
func keep(c *cinder.Cinder) *volume.Keeper { return volume.NewKeeper(cinder.NewBackend(c, wait), wait) }

// wait really pauses: a real Cinder takes its time.
func wait(ctx context.Context, d time.Duration) error {
	if os.Getenv("FLEX_TEST_CINDER") == "" {
		d /= 20 // the fake's volumes change with each look at them
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// spec returns the volume of a claim that belongs to this test, and removes it when the test ends.
func spec(t *testing.T, c *cinder.Cinder) volume.Spec {
	t.Helper()
	uid := rand.Text()
	s := volume.Spec{
		UID: uid, Name: "pvc-" + uid, SizeGiB: 1,
		Metadata: map[string]string{volume.KeyUID: uid, "flex-provisioner.io/claim-name": t.Name()},
		Access: volume.Access{
			Method: cinder.Auto,
			Client: volume.Client{Initiator: "iqn.2026-11.io.flex-provisioner:nodes", Host: "test", OSType: "linux"},
		},
	}
	t.Cleanup(func() {
		target := volume.Target{UID: uid, Name: s.Name, Access: s.Access}
		if _, err := keep(c).Remove(context.WithoutCancel(t.Context()), target); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return s
}

// A volume is taken through every step twice.
func TestEveryStepCanBeRepeated(t *testing.T) {
	for _, api := range []volume.Method{cinder.Auto, cinder.Attachments, cinder.Reserve} {
		t.Run(string(api), func(t *testing.T) { testLife(t, api) })
	}
}

func testLife(t *testing.T, api volume.Method) {
	t.Helper()
	onEachCinder(t, func(t *testing.T, login credentials.Login) {
		t.Helper()
		c := connect(t, login)
		s := spec(t, c)
		s.Access.Method = api
		keeper := keep(c)
		first, _, err := keeper.Ensure(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := keeper.Ensure(t.Context(), s)
		if err != nil || again.ID != first.ID {
			t.Fatalf("a second run has volume %q, the first %q (%v)", again.ID, first.ID, err)
		}
		if first.SizeGiB != 1 || first.UID() != s.UID || first.Created.IsZero() || first.Name != s.Name {
			t.Errorf("volume is %+v", first)
		}
		if isRefused := attachmentsAreRefused(t, keeper, first, s); isRefused {
			return
		}
		one, held := export(t, keeper, first, s)
		first, err = c.Get(t.Context(), first.ID)
		if err != nil {
			t.Fatal(err)
		}
		two, heldAgain := export(t, keeper, first, s)
		if held.Method != heldAgain.Method || held.ID != heldAgain.ID || held.Method == cinder.Auto {
			t.Errorf("held by %+v, then by %+v", held, heldAgain)
		}
		if one.IQN == "" || one.Portal == "" || one.Password == "" || one != two {
			t.Errorf("the connection is %q at %q, then %q at %q", one.IQN, one.Portal, two.IQN, two.Portal)
		}
		if held.Method == cinder.Attachments {
			completeAgain(t, c, keeper, first, s)
		}
		target := volume.Target{UID: s.UID, ID: first.ID, Access: held}
		for range 2 {
			if _, err := keeper.Remove(t.Context(), target); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Get(t.Context(), first.ID); !volume.Is(err, volume.Gone) {
			t.Errorf("the volume after removal: %v", err)
		}
	})
}

// completeAgain exports a volume as if Cinder had died after it completed the attachment, and
// before it changed the volume.
func completeAgain(t *testing.T, c *cinder.Cinder, k *volume.Keeper, v volume.Volume, s volume.Spec) {
	t.Helper()
	v.Status = "attaching"
	export(t, k, v, s)
	if now, err := c.Get(t.Context(), v.ID); err != nil || now.Status != "in-use" {
		t.Errorf("a volume whose attachment was completed twice is %s, %v", now.Status, err)
	}
}

// attachmentsAreRefused reports whether the spec asks for attachments of a Cinder 17, and fails the
// test if that does not say that it makes them only for servers.
func attachmentsAreRefused(t *testing.T, k *volume.Keeper, v volume.Volume, s volume.Spec) bool {
	t.Helper()
	if s.Access.Method != cinder.Attachments || os.Getenv(releaseEnv) != "17" {
		return false
	}
	_, _, err := k.Export(t.Context(), v, s.Access)
	if !volume.Is(err, volume.Misconfigured) || !strings.Contains(err.Error(), "'instance_uuid' is a required property") {
		t.Errorf("an attachment without a server: %v", err)
	}
	return true
}

type target struct {
	Portal   string `json:"target_portal"`
	IQN      string `json:"target_iqn"`
	Password string `json:"auth_password"`
}

func export(t *testing.T, k *volume.Keeper, v volume.Volume, s volume.Spec) (target, volume.Access) {
	t.Helper()
	c, held, err := k.Export(t.Context(), v, s.Access)
	if err != nil {
		t.Fatal(err)
	}
	var to target
	if err := c.Decode(&to); err != nil || c.Kind != "iscsi" {
		t.Fatalf("kind %q, error %v", c.Kind, err)
	}
	return to, held
}

func TestFindReturnsOnlyTheClaimsVolumes(t *testing.T) {
	onEachCinder(t, func(t *testing.T, login credentials.Login) {
		t.Helper()
		c := connect(t, login)
		mine, other := spec(t, c), spec(t, c)
		keeper := keep(c)
		for _, s := range []volume.Spec{mine, other} {
			if _, _, err := keeper.Ensure(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		found, err := c.Find(t.Context(), mine.UID)
		if err != nil || len(found) != 1 || found[0].UID() != mine.UID {
			t.Errorf("found %v, %v", found, err)
		}
	})
}

// Every error has Cinder's own message and request ID.
func TestRefusalHasCindersMessageAndRequestID(t *testing.T) {
	const missing = "ffffffff-0000-0000-0000-000000000000"
	tests := map[string]struct {
		do   func(ctx context.Context, c *cinder.Cinder, s volume.Spec) error
		kind volume.Kind
		said string
	}{
		"an unknown type": {create(func(s *volume.Spec) { s.Type = "nope" }), volume.Misconfigured, "nope could not be found"},
		"no size":         {create(func(s *volume.Spec) { s.SizeGiB = -1 }), volume.Misconfigured, "Invalid input"},
		"no such volume": {
			func(ctx context.Context, c *cinder.Cinder, _ volume.Spec) error {
				_, err := c.Get(ctx, missing)
				return err
			},
			volume.Gone, missing + " could not be found",
		},
		"deletion of no such volume": {
			func(ctx context.Context, c *cinder.Cinder, _ volume.Spec) error { return c.Delete(ctx, missing) },
			volume.Gone, missing + " could not be found",
		},
		"a connector without initiator": {
			func(ctx context.Context, c *cinder.Cinder, s volume.Spec) error {
				v, _, err := keep(c).Ensure(ctx, s)
				if err == nil {
					_, err = c.Initialize(ctx, v.ID, volume.Client{Host: "h"})
				}
				return err
			},
			volume.Misconfigured, "Connector doesn't have required information: initiator",
		},
		"a reserved volume, reserved again": {
			func(ctx context.Context, c *cinder.Cinder, s volume.Spec) error {
				v, _, err := keep(c).Ensure(ctx, s)
				if err == nil {
					err = c.Reserve(ctx, v.ID)
				}
				if err == nil {
					err = c.Reserve(ctx, v.ID)
				}
				return err
			},
			volume.Busy, "status must be available to reserve, but the status is attaching",
		},
	}
	onEachCinder(t, func(t *testing.T, login credentials.Login) {
		t.Helper()
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				c := connect(t, login)
				err := tc.do(t.Context(), c, spec(t, c))
				if !volume.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.said) || !strings.Contains(err.Error(), "req-") {
					t.Errorf("error %v, want kind %d, %q and a request id", err, tc.kind, tc.said)
				}
			})
		}
	})
}

func create(edit func(*volume.Spec)) func(context.Context, *cinder.Cinder, volume.Spec) error {
	return func(ctx context.Context, c *cinder.Cinder, s volume.Spec) error {
		edit(&s)
		_, err := c.Create(ctx, s)
		return err
	}
}
