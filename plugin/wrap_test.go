package plugin_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// whole is a line that is not broken: a command or a single word, alone or after a key.
var whole = regexp.MustCompile(`^(\w+)? *(kubectl .*|\S+)$`)

// mustFit fails the test if a terminal would break a line of words.
func mustFit(t fakecluster.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if columns := utf8.RuneCountInString(line); columns > 100 && !whole.MatchString(line) {
			t.Errorf("%d columns: %s", columns, line)
		}
	}
}

// further is the beginning of a further line of a message.
var further = regexp.MustCompile(`\n {7,}`)

// joined returns what is printed with each message in one line.
func joined(text string) string { return further.ReplaceAllString(text, " ") }

// What validate says of a file has the longest messages.
func TestMessagesFitATerminal(t *testing.T) {
	inFolder(t, map[string]string{"a.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: gold, labels: {type: provisioner-config}}
data: {image: a, service-account-name: writer, verbs: "provision,undo", max-parallel: many}
binaryData: {key: AA==}
`})
	var out strings.Builder
	cmd := plugin.Command(time.Now)
	cmd.SetArgs([]string{"validate", "-f", "."})
	cmd.SetOut(&out)
	err := cmd.Execute()
	if !errors.Is(err, plugin.ErrFound) || !strings.Contains(out.String(), "no binaryData") {
		t.Fatalf("%v: it prints\n%s", err, out.String())
	}
	mustFit(t, out.String())
}
