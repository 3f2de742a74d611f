package plugin_test

import (
	"os"
	"strings"
	"testing"
	"time"

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
