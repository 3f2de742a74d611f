//go:build linux

package box_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/try/box"
)

func TestMain(m *testing.M) {
	box.Main()
	os.Exit(m.Run())
}

func open(t *testing.T) *box.Box {
	t.Helper()
	b, err := box.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func sh(script string, change ...func(*box.Spec)) box.Spec {
	s := box.Spec{
		Command: []string{"/bin/sh", "-ec", script}, Env: []string{box.Path}, Dir: "/tmp", UID: 65532, GID: 65532,
		Volumes: []box.Volume{{Path: "/tmp", Mode: 0o777}},
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func run(t *testing.T, b *box.Box, spec box.Spec) box.End {
	t.Helper()
	end, err := b.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

func TestContainerHasItsFilesAndNoOthers(t *testing.T) {
	b := open(t)
	end := run(t, b, sh(`cat /etc/flex/request.json; echo a >/tmp/a; ls /home /root /var/lib 2>&1 || true
if touch /x 2>/dev/null; then echo writable; fi; if touch /etc/flex/x 2>/dev/null; then echo writable; fi
echo said >/dev/termination-log; grep -E 'CapEff|NoNewPrivs' /proc/self/status; echo $$; exit 3`, func(s *box.Spec) {
		s.Volumes = append(s.Volumes, box.Volume{Path: "/etc/flex", ReadOnly: true, Mode: 0o755, Files: []box.File{{Name: "request.json", Content: []byte("{}\n"), Mode: 0o644}}})
	}))
	t.Log(end.Output, end.Took)
	if end.Code != 3 || end.Message != "said\n" || !strings.HasPrefix(end.Output, "{}\n") || strings.Contains(end.Output, "writable") {
		t.Errorf("%+v", end)
	}
	if !strings.Contains(end.Output, "0000000000000000") || !strings.HasSuffix(end.Output, "\n1\n") {
		t.Errorf("it has capabilities, or other processes: %s", end.Output)
	}
}

func TestSharedVolumesOutliveTheirContainers(t *testing.T) {
	b := open(t)
	root := func(s *box.Spec) {
		s.UID, s.GID, s.CapsAdded = 0, 0, []string{"DAC_OVERRIDE", "FOWNER"}
		s.Volumes = append(s.Volumes, box.Volume{Path: "/var/lib/flex-volumes", Shared: "volumes", Mode: 0o755})
	}
	first := run(t, b, sh("mkdir -m 000 /var/lib/flex-volumes/a; echo x >/var/lib/flex-volumes/a/x; id -u", root))
	second := run(t, b, sh("cat /var/lib/flex-volumes/a/x; ls /tmp", root))
	if first.Output != "0\n" || second.Output != "x\n" {
		t.Errorf("%+v %+v", first, second)
	}
}

func TestKilledContainerLeavesNoProcess(t *testing.T) {
	b := open(t)
	spec := sh("setsid sh -c 'trap \"\" TERM; sleep 1000; :' & sleep 1000; :", func(s *box.Spec) { s.KillAfter = 300 * time.Millisecond })
	if end := run(t, b, spec); !end.Killed || end.Code != 137 {
		t.Errorf("%+v", end)
	}
	ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	spec.KillAfter = 0
	end, err := b.Run(ctx, spec)
	if err != nil || end.Code != 137 || end.Killed {
		t.Errorf("%+v %v", end, err)
	}
}

// A kill may come before the container has started.
func TestAKillThatComesFirstIsNotLost(t *testing.T) {
	b := open(t)
	for range 20 {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if end, err := b.Run(ctx, sh("sleep 1000")); err != nil || end.Code != 137 {
			t.Fatalf("%+v %v", end, err)
		}
	}
}

// A request and a script are larger than what a pipe holds.
func TestLargeFilesReachTheContainer(t *testing.T) {
	b := open(t)
	end := run(t, b, sh("wc -c </etc/flex/pv.json", func(s *box.Spec) {
		s.Volumes = append(s.Volumes, box.Volume{Path: "/etc/flex", ReadOnly: true, Mode: 0o755, Files: []box.File{{Name: "pv.json", Content: make([]byte, 300<<10), Mode: 0o644}}})
	}))
	if end.Output != "307200\n" {
		t.Errorf("%+v", end)
	}
}
