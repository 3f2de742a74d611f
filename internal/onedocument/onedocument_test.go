package onedocument_test

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/internal/onedocument"
)

func TestSecondDocumentIsRefusedWithItsLine(t *testing.T) {
	for text, says := range map[string]string{
		"":                        "",
		"# a comment\n":           "",
		"a: 1\n":                  "",
		"---\na: 1\n...\n":        "",
		"# a comment\n---\na: 1":  "",
		"a: 1\n---\n":             "",
		"a: 1\n---\n# a comment":  "",
		"\ufeffa: 1\r\n":          "",
		"a: 1\n---\nb: 2\n":       "line 3 belongs to a second YAML document",
		"---\n---\nb: 2\n":        "line 3 belongs to a second YAML document",
		"a: 1\n---\n---\nb: 2\n":  "line 4 belongs to a second YAML document",
		"a: 1\n---\nb: [\n":       "line 3",
		"a: 1\n...\nb: 2\n":       "line 2",
		"a: \"1\n---\nb: 2\"\n":   "line 2",
		"a: |\n  1\n  ---\n  2\n": "",
	} {
		_, err := onedocument.Parse([]byte(text))
		if said := message(err); (says == "") != (err == nil) || !strings.Contains(said, says) {
			t.Errorf("%q: %v, want %q in it", text, err, says)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
