package quote_test

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// A user copies a command as a whole. Half of it, pasted, would run.
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
		"short":                              "short",
		words(25):                            words(18) + indent + words(7),
		long + " " + retry + ". Then look":   long + indent + retry + ". Then look",
		"it may not: " + bind + ", and then": "it may not:" + indent + bind + "," + indent + "and then",
		"two\n" + strings.Repeat(" ", 90) + "remedy: touch x": "two" + indent + "remedy: touch x",
	} {
		if got := quote.Indent(text, 7); got != want {
			t.Errorf("it is\n%s\nwant\n%s", got, want)
		}
	}
}
