package test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promisedBy finds the tests that docs/reliability.md names.
var promisedBy = regexp.MustCompile("`Test(\\w+)`")

// TestTestsOfReliabilityExist looks for every test that docs/reliability.md names.
func TestTestsOfReliabilityExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	for line := range strings.Lines(string(page)) {
		row := strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| promise")
		named := promisedBy.FindAllStringSubmatch(line, -1)
		if row && len(named) == 0 {
			t.Errorf("docs/reliability.md promises without a test: %s", line)
		}
		for _, m := range named {
			if !slices.Contains(tests, m[1]) {
				t.Errorf("docs/reliability.md names Test%s, which does not exist", m[1])
			}
		}
	}
}
