package shell

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// The test's own binary is every program that a script calls here, under its name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "flex" {
		in := here()
		if dir := os.Getenv("FLEX_TEST_DIR"); dir != "" {
			in.requests, in.pv, in.account = dir+"/request.json", dir+"/pv.json", dir+"/account"
		}
		os.Exit(execute(in, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// programs returns a directory with the programs of an image.
func programs(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	bin := t.TempDir()
	must(t, os.Chmod(bin, 0o755)) // for another user, too
	// The race detector lets each program sleep for a second before it ends.
	script := fmt.Sprintf("#!/bin/bash\nGORACE=atexit_sleep_ms=0 exec -a flex %q \"$@\"\n", self)
	must(t, os.WriteFile(filepath.Join(bin, "flex"), []byte(script), 0o755))
	return bin
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestExitCodesAreThoseOfTheContract(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		code      int
		says      string
	}{
		"no verb":       {nil, contract.ExitUsage, "usage:\n  flex each N COMMAND"},
		"another verb":  {[]string{"fill", "/x"}, contract.ExitUsage, `unknown verb "fill"`},
		"no directory":  {[]string{"empty"}, contract.ExitUsage, "a directory is required"},
		"help":          {[]string{"--help"}, contract.ExitDone, "usage:\n  flex each N COMMAND"},
		"version":       {[]string{"--version"}, contract.ExitDone, "flex "},
		"nothing there": {[]string{"empty", t.TempDir() + "/such"}, contract.ExitDone, ""},
		"no parent":     {[]string{"empty", t.TempDir() + "/no/such"}, contract.ExitTempFail, "may still exist elsewhere"},
		"a mount point": {[]string{"empty", "/proc"}, contract.ExitTempFail, "Remedy: unmount file systems there"},
	} {
		t.Run(name, func(t *testing.T) {
			var says bytes.Buffer
			if code := execute(&container{out: &says, log: &says}, test.arguments); code != test.code || !strings.Contains(says.String(), test.says) {
				t.Errorf("exit %d: %s", code, &says)
			}
		})
	}
}

// Every node pulls the images that have it. It starts without what client-go and the API's types
// initialize.
func TestItIsASmallStaticProgram(t *testing.T) {
	const program, withoutHTTP2 = "../cmd/flex", "-tags nethttpomithttp2"
	makefile, err := os.ReadFile("../Makefile")
	must(t, err)
	if !strings.Contains(string(makefile), withoutHTTP2+" -o $(BIN)/ ./cmd/flex)") {
		t.Errorf("the Makefile does not build it with %s, as this test does", withoutHTTP2)
	}
	binary := filepath.Join(t.TempDir(), "flex")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-tags", strings.Fields(withoutHTTP2)[1], "-o", binary, program)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := os.Stat(binary)
	must(t, err)
	if info.Size() > 6<<20 {
		t.Errorf("it has %d bytes", info.Size())
	}
	imports, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if .Module}}{{.ImportPath}}{{end}}", program).Output()
	must(t, err)
	const module = "github.com/flex-provisioner/flex-provisioner/"
	if got := strings.Fields(string(imports)); !slices.Equal(got, []string{module + "contract", module + "internal/version", module + "shell", module + "cmd/flex"}) {
		t.Errorf("beside Go's own packages it has %q", got)
	}
}

// exitOf returns the exit code of a command that has ended.
func exitOf(t *testing.T, err error) int {
	t.Helper()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return exit.ExitCode()
	}
	must(t, err)
	return 0
}

func TestThePageListsEveryVerb(t *testing.T) {
	page, err := os.ReadFile("../docs/contract.md")
	must(t, err)
	_, table, _ := strings.Cut(string(page), "| verb of flex |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, v := range verbs() {
		if !strings.Contains(table, "| `flex "+v.name+" ") {
			t.Errorf("the table does not list %s", v.name)
		}
	}
	for _, v := range verdicts {
		if !strings.Contains(table, fmt.Sprintf("| `flex %s TEXT` |", v.name)) || !strings.Contains(usage(), fmt.Sprintf("exit code %d", v.code)) {
			t.Errorf("the table or the help does not say how %s ends", v.name)
		}
	}
}
