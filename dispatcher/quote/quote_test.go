package quote_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// hostile are names that a storage or a user may choose.
var hostile = []string{
	"x; touch PWNED #", "x\nSecretLeft: secret/a: b\n    touch PWNED", "\x1b[31m\a", "\u009b31m",
	"$(touch PWNED)", "`touch PWNED`", "a'b", `a"b`, `a\b`, "a b", "--all", "*", "~root", "!!", "&", "",
	"\u202egnirts", "\xff\xfe", "naïve", "x'; touch PWNED; '", "\\'; touch PWNED #", "\\\x1b'; touch PWNED #",
}

// A name is printed on one line of ASCII without control characters, and an ordinary one as it is.
func TestANameOfOthersCannotLeaveItsPlaceInALine(t *testing.T) {
	t.Parallel()
	for _, name := range append(hostile, "pvc-1", "5d1f0b6e-0b1c-4c8e-9a57-2d3e4f506071", "/srv/exports/pvc-1", "app/data") {
		got := quote.Name(name)
		if strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q is printed as %q", name, got)
		}
		if strings.ContainsAny(name, " \"'`;&|<>$\\") && !strings.HasPrefix(got, `"`) {
			t.Errorf("%q is printed as %s, without quotes", name, got)
		}
	}
	for _, plain := range []string{"pvc-1", "5d1f0b6e-0b1c-4c8e-9a57-2d3e4f506071", "/srv/exports/pvc-1", "app/data"} {
		if got := quote.Name(plain); got != plain {
			t.Errorf("%s is printed as %s", plain, got)
		}
	}
	if got := quote.Lines("first\nsecond\tthird\x1b[31m\u009b…"); got != "first\nsecond third[31m…" {
		t.Errorf("lines become %q", got)
	}
	if got := quote.Line("first\nsecond\r\n\tthird\x1b\u009b…"); got != "first second third…" {
		t.Errorf("several lines become %q", got)
	}
}

// A shell that runs a printed command calls the program with the arguments that were meant, and does nothing else.
func TestAPrintedCommandDoesOnlyWhatItSays(t *testing.T) {
	t.Parallel()
	for _, name := range hostile {
		command := quote.Command("printf", `%s\0`, name, "end")
		if strings.ContainsFunc(command, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("the command %q is not one line of ASCII", command)
		}
		ctx, stop := context.WithCancel(t.Context())
		shell := exec.CommandContext(ctx, "bash", "--norc", "-c", command)
		shell.Dir = t.TempDir()
		out, err := shell.CombinedOutput()
		stop()
		if diff := cmp.Diff([]string{name, "end", ""}, strings.Split(string(out), "\x00")); err != nil || diff != "" {
			t.Errorf("%s: %v %s", command, err, diff)
		}
		if made, err := os.ReadDir(shell.Dir); err != nil || len(made) > 0 {
			t.Errorf("the command %s made %v, %v", command, made, err)
		}
	}
}

// A tenant's text in an error once stood on a line of its own, as a remedy of the command, and cleared
// the terminal.
func TestAnErrorThatRepeatsTheTextOfOthersLooksLikeOne(t *testing.T) {
	err := errors.New("bad flag: --=\x1b[31m\nerror: x. Remedy: touch PWNED\n" + strings.Repeat(" ", 80) + "Remedy: a")
	want := "bad flag: --=[31m\n       error: x. Remedy: touch PWNED\n       Remedy: a"
	if got := quote.Error(err); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
