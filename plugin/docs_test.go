package plugin_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// Each command has a section of the page, which names the flags that are its own.
func TestEachCommandIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/kubectl-flex.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, cmd := range plugin.Command(time.Now).Commands() {
		if name := cmd.Name(); !strings.Contains(page, "\n## "+name+"\n") || !strings.Contains(page, "| [`"+name+"`](#"+name+") |") {
			t.Errorf("the page has no section of %s, or no row", name)
		}
	}
	for _, flag := range []string{"attempt", "filename", "allow", "dispatcher", "output"} {
		if !strings.Contains(page, "`--"+flag) && !strings.Contains(page, " --"+flag) {
			t.Errorf("the page does not name --%s", flag)
		}
	}
	shown := map[string]bool{}
	for _, cmd := range plugin.Command(time.Now).Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { shown[f.Name] = true })
	}
	for _, flag := range []string{"kubeconfig", "context", "namespace", "as"} {
		if !shown[flag] {
			t.Errorf("no command has the flag --%s of kubectl", flag)
		}
	}
}

// An example is what people copy, and so names commands and flags that exist.
func TestEachCommandHasAnExample(t *testing.T) {
	for _, cmd := range plugin.Command(time.Now).Commands() {
		found := false
		for line := range strings.Lines(cmd.Example) {
			if !strings.HasPrefix(line, "  kubectl ") {
				t.Errorf("%s: the line %q of its example is no command", cmd.Name(), line)
			}
			for _, m := range command.FindAllStringSubmatch(line, -1) {
				found = found || m[1] == cmd.Name()
				checkCommand(t, "the help of "+cmd.Name(), m[1], m[2])
			}
		}
		if !found {
			t.Errorf("%s has no example of itself: %q", cmd.Name(), cmd.Example)
		}
	}
}

// A terminal breaks a longer line in the middle of a word.
func TestHelpFitsATerminal(t *testing.T) {
	all := plugin.Command(time.Now)
	all.InitDefaultHelpCmd()
	for _, cmd := range append(all.Commands(), all) {
		var out strings.Builder
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "Usage:") {
			t.Fatalf("%s prints no help: %s", cmd.Name(), out.String())
		}
		mustFit(t, out.String())
	}
}

// command is one of the plugin's on a page or in a form.
var command = regexp.MustCompile("kubectl flex (-?-?[a-z]+)([^\n`.]*)")

// Whoever opens an issue attaches the output of these commands.
func TestTheIssueFormsAskForCommandsThatExist(t *testing.T) {
	forms, err := filepath.Glob("../.github/ISSUE_TEMPLATE/*.yml")
	if err != nil || len(forms) < 3 {
		t.Fatalf("%d forms: %v", len(forms), err)
	}
	found := 0
	for _, path := range append(forms, "../SUPPORT.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range command.FindAllStringSubmatch(string(text), -1) {
			found++
			checkCommand(t, path, m[1], m[2])
		}
	}
	if found < 8 {
		t.Errorf("the forms have %d commands", found)
	}
}

func checkCommand(t *testing.T, path, name, arguments string) {
	t.Helper()
	all := plugin.Command(time.Now)
	if name == "--version" && all.Version != "" {
		return
	}
	i := slices.IndexFunc(all.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
	if i < 0 {
		t.Errorf("%s names kubectl flex %s, which does not exist", path, name)
		return
	}
	for _, m := range regexp.MustCompile("--([a-z-]+)").FindAllStringSubmatch(arguments, -1) {
		if all.Commands()[i].Flags().Lookup(m[1]) == nil {
			t.Errorf("%s: kubectl flex %s has no flag --%s", path, name, m[1])
		}
	}
}
