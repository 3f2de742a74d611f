package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/try/box"
)

// asProgram has the test's own binary be the program.
const asProgram = "KUBECTL_FLEX_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	box.Main() // what try starts has none of the test's variables
	if os.Getenv(asProgram) != "" || filepath.Base(os.Args[0]) == "flex" {
		main()
	}
	os.Exit(m.Run())
}

// kubectl flex try puts a link of this name into the PATH of a script.
func TestItIsTheProgramFlexUnderThatName(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, argument string
		code           int
		says           string
	}{
		{"flex", "--version", contract.ExitDone, "flex "},
		{"flex", "fill", contract.ExitUsage, `flex: unknown verb "fill"`},
		{"kubectl-flex", "--version", contract.ExitDone, "kubectl flex version "},
		{"kubectl-flex.flex", "--version", contract.ExitDone, "kubectl flex version "},
	} {
		path := filepath.Join(t.TempDir(), test.name)
		if err := os.Symlink(self, path); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), path, test.argument)
		cmd.Env = append(os.Environ(), asProgram+"=1")
		says, err := cmd.CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != test.code ||
			!strings.HasPrefix(string(says), test.says) {
			t.Errorf("%s %s: exit %d: %s", test.name, test.argument, code, says)
		}
	}
}
