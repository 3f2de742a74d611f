package test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A folder without a line of its own is reviewed by those who review everything.
func TestEachRoomHasOwners(t *testing.T) {
	owned := map[string]bool{}
	for line := range strings.Lines(content(t, ".github/CODEOWNERS")) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "*" || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) < 2 || !strings.HasPrefix(fields[1], "@") {
			t.Errorf("%s has no owner", fields[0])
		}
		owned[strings.Trim(fields[0], "/")] = true
	}
	rooms := map[string]bool{}
	for _, file := range tracked(t) {
		room, _, _ := strings.Cut(file, "/")
		if at, err := os.Stat(filepath.Join(repository, room)); err == nil && at.IsDir() {
			rooms[room] = true
		}
	}
	if !maps.Equal(owned, rooms) {
		t.Errorf("CODEOWNERS has\n%q,\nthe tree has\n%q", slices.Sorted(maps.Keys(owned)), slices.Sorted(maps.Keys(rooms)))
	}
}
