package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testName finds the tests of a file.
var testName = regexp.MustCompile(`(?m)^func Test(\w+)\(`)

// TestInvariantsHaveTests looks for a test of every invariant that ARCHITECTURE.md lists: its name
// begins with the invariant's.
func TestInvariantsHaveTests(t *testing.T) {
	tests := testNames(t)
	invariants := rowsOf(t, "## Invariants")
	if len(invariants) < 10 {
		t.Fatalf("ARCHITECTURE.md lists %d invariants: has the table moved?", len(invariants))
	}
	for _, name := range invariants {
		prefix := camelCase(name)
		found := false
		for _, test := range tests {
			found = found || strings.HasPrefix(strings.ToLower(test), strings.ToLower(prefix))
		}
		if !found {
			t.Errorf("no test has a name that begins with Test%s, of the invariant %s", prefix, name)
		}
	}
}

// namesOfTests has, once it was asked for, the names of all tests.
var namesOfTests []string

func testNames(t *testing.T) []string {
	t.Helper()
	if namesOfTests != nil {
		return namesOfTests
	}
	var out []string
	for _, file := range tracked(t, "_test.go") {
		b, err := os.ReadFile(filepath.Join(repository, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testName.FindAllStringSubmatch(string(b), -1) {
			out = append(out, m[1])
		}
	}
	namesOfTests = out
	return out
}

// rowsOf returns the first column of the table under a heading of ARCHITECTURE.md.
func rowsOf(t *testing.T, heading string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(repository, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var out []string
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || strings.HasPrefix(line, "|---") || strings.TrimSpace(cells[1]) == "name" {
			continue
		}
		out = append(out, strings.TrimSpace(cells[1]))
	}
	return out
}

// camelCase turns record-before-storage into RecordBeforeStorage.
func camelCase(name string) string {
	var out strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String()
}
