//go:build linux

package box_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/try/box"
)

// engine plays podman: it runs the command on this machine, and keeps its own arguments and the values
// of the variables that it is to pass on.
const engine = `#!/bin/sh
printf '%s\n' "$@" >"$ENGINE_CALLS"
for one; do
  case $one in
    --env=*) eval "echo \"\$${one#--env=}\"" ;;
    --volume=*:/dev/termination-log) file=${one#--volume=}; echo said >"${file%%:*}" ;;
    --volume=*:/etc/flex:ro) file=${one#--volume=}; cat "${file%%:*}/request.json" ;;
  esac
done
exit 3
`

func TestEnginesGetNoSecretAsAnArgument(t *testing.T) {
	dir := t.TempDir()
	path, calls := filepath.Join(dir, "podman"), filepath.Join(dir, "calls")
	if err := os.WriteFile(path, []byte(engine), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ENGINE_CALLS", calls)
	t.Setenv("TMPDIR", dir)
	e, err := box.NewEngine(path)
	if err != nil {
		t.Fatal(err)
	}
	end, err := e.Run(t.Context(), box.Spec{
		Image: "localhost/own:v1", Command: []string{"flex", "each"}, Args: []string{"provision"}, Env: []string{box.Path, "PASSWORD=a-password"}, UID: 65532, GID: 65532, CapsAdded: []string{"CHOWN"},
		Volumes: []box.Volume{{Path: "/etc/flex", ReadOnly: true, Mode: 0o755, Files: []box.File{{Name: "request.json", Content: []byte("{}\n"), Mode: 0o644}}}},
	})
	if err != nil || end.Code != 3 || end.Output != "a-password\n{}\n" || end.Message != "said\n" {
		t.Errorf("%+v %v", end, err)
	}
	said, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(said), "\n", " ")
	for _, want := range []string{"--user=65532:65532", "--cap-drop=ALL", "--cap-add=CHOWN", "--entrypoint=flex", "localhost/own:v1 each provision "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if strings.Contains(text, "a-password") {
		t.Errorf("the password is an argument: %s", text)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "flex-try-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
