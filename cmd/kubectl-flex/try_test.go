//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const recipe = "../../configmaps/isolated.yaml"

// program returns a command of the program, whose temporary files are in dir.
func program(t *testing.T, dir string, arguments ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, arguments...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// below returns the processes that a process has started, and theirs.
func below(pid int) (all []int) {
	entries, _ := filepath.Glob("/proc/[0-9]*/stat")
	children := map[int][]int{}
	for _, entry := range entries {
		text, err := os.ReadFile(entry)
		if err != nil {
			continue // it has ended
		}
		var own, parent int
		var state string
		_, _ = fmt.Sscan(string(text[:bytes.IndexByte(text, ' ')]), &own)
		_, _ = fmt.Sscan(string(text[bytes.LastIndexByte(text, ')')+1:]), &state, &parent)
		children[parent] = append(children[parent], own)
	}
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		all = append(all, children[next[0]]...)
		next = append(next, children[next[0]]...)
	}
	return all
}

// isAlive reports whether a process is at work. One that has ended is not, also before its parent has
// waited for it.
func isAlive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.HasPrefix(string(text[bytes.LastIndexByte(text, ')')+1:]), " Z")
}

func mounts(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// mustLeaveNothing fails the test if a trial has left a process or a file.
func mustLeaveNothing(t *testing.T, dir, before string, started []int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); slices.ContainsFunc(started, isAlive); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("of the processes %v some are left", started)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in %s: %v, %v", dir, left, err)
	}
	if after := mounts(t); after != before {
		t.Errorf("mounts before:\n%s\nand after:\n%s", before, after)
	}
}

func TestAKilledTrialLeavesNothing(t *testing.T) {
	before := mounts(t)
	met := 0
	for i := range 10 {
		dir := t.TempDir()
		cmd, out := program(t, dir, "try", recipe)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(50+300*i) * time.Millisecond)
		started := below(cmd.Process.Pid)
		met += min(len(started), 1)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		mustLeaveNothing(t, dir, before, started)
		if t.Failed() {
			t.Fatalf("killed after %d: %s", i, out)
		}
	}
	if met < 5 {
		t.Errorf("only %d of 10 kills met containers", met)
	}
}

func TestAnInterruptedTrialDeletesWhatItHasMade(t *testing.T) {
	before := mounts(t)
	dir := t.TempDir()
	cmd, out := program(t, dir, "try", recipe)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var started []int
	for len(started) < 2 { // the box, and a container
		started = below(cmd.Process.Pid)
		time.Sleep(time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	mustLeaveNothing(t, dir, before, started)
	if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestATrialSaysWhatItLacks(t *testing.T) {
	login, badge := filepath.Join(t.TempDir(), "login.yaml"), filepath.Join(t.TempDir(), "badge.svg")
	if err := os.WriteFile(login, []byte("{apiVersion: v1, kind: Secret, metadata: {name: http}, stringData: {header: 'Authorization: x'}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		arguments []string
		code      int
		says      string
	}{
		{[]string{"../../configmaps/http.yaml", login}, 2, "Remedy: kubectl flex try --yes"},
		{[]string{"../../configmaps/http.yaml", "--yes"}, 2, "the files have no Secret flex-provisioner/http"},
		{[]string{"../../deploy/examples/claim.yaml"}, 2, "Remedy: name its file"},
		{[]string{recipe, "--badge=/none/badge.svg"}, 2, "/none/badge.svg"},
		{[]string{recipe, "--only=provision", "--output=json", "--badge=" + badge}, 0, `"verdict": "kept"`},
	} {
		cmd, out := program(t, t.TempDir(), append([]string{"try"}, test.arguments...)...)
		_ = cmd.Run()
		for line := range strings.Lines(out.String()) {
			if len(line) > 101 {
				t.Errorf("%v: %d columns: %s", test.arguments, len(line)-1, line)
			}
		}
		said := strings.Join(strings.Fields(out.String()), " ")
		if code := cmd.ProcessState.ExitCode(); code != test.code || !strings.Contains(said, test.says) {
			t.Errorf("%v: exit code %d, want %d and %q: %s", test.arguments, code, test.code, test.says, out)
		}
	}
	if picture, err := os.ReadFile(badge); err != nil || !strings.Contains(string(picture), "1 kept") {
		t.Errorf("the badge is %q, %v", picture, err)
	}
}
