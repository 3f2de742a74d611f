package quote_test

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// A user copies a command as a whole. Half of it, pasted, would run, unless a backslash ends it.
func TestALongMessageIsBrokenAtBlanksAndNoCommandIs(t *testing.T) {
	const (
		indent = "\n       "
		bind   = "kubectl create clusterrolebinding NAME --clusterrole=flex-provisioner-volumes " +
			"--serviceaccount=flex-provisioner:writer"
		retry = "kubectl flex retry data --namespace=shop"
	)
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
	long := strings.Repeat("a", 60)
	for text, want := range map[string]string{
		"short":                            "short",
		words(25):                          words(18) + indent + words(7),
		long + " " + retry + ". Then look": long + indent + retry + ". Then look",
		"it may not: " + bind + ", and then": "it may not:" + indent +
			strings.Replace(bind, " --serv", " \\"+indent+"--serv", 1) + ", and then",
		"kubectl flex retry " + strings.Repeat("a", 100) + " --now": "kubectl flex retry \\" + indent +
			strings.Repeat("a", 100) + " \\" + indent + "--now",
		"two\n" + strings.Repeat(" ", 90) + "remedy: touch x": "two" + indent + "remedy: touch x",
	} {
		if got := quote.Indent(text, 7); got != want {
			t.Errorf("it is\n%s\nwant\n%s", got, want)
		}
	}
}

// A terminal breaks a longer line at its left edge, where what others have written would look like
// a line of the command's own.
func TestNoTextHasALineThatATerminalBreaks(t *testing.T) {
	const columns = 93
	for name, text := range map[string]string{
		"a command":    "kubectl " + strings.Repeat("get pods ", 40),
		"a word":       strings.Repeat("a", 300),
		"wide letters": strings.Repeat("中", 300),
		"wide words":   strings.Repeat("中文 ", 100),
	} {
		lines := quote.Wrap(text, columns)
		for _, line := range lines {
			wide := 0
			for _, r := range line {
				if wide++; r > 127 {
					wide++
				}
			}
			if wide > columns {
				t.Errorf("%s: %d columns: %s", name, wide, line)
			}
		}
		whole := strings.NewReplacer(" \\\n", " ", "\\\n", "", "\n", " ").Replace(strings.Join(lines, "\n"))
		if whole != strings.TrimSpace(text) {
			t.Errorf("%s: it is\n%s", name, strings.Join(lines, "\n"))
		}
	}
	if got := quote.Indent(strings.Repeat("a", 50), quote.Columns); len(strings.Fields(got)) != 3 {
		t.Errorf("at the right edge it is %q", got)
	}
}
