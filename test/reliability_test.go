package test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promisedBy finds the tests that a page names.
var promisedBy = regexp.MustCompile("`Test(\\w+)`")

// checkPage looks for every test that a page of docs names. Each row of a table that has a column
// "test" names one, or contains a text that excuses it.
func checkPage(t *testing.T, name, excuse string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(repository, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	tests, inTable := testNames(t), false
	for line := range strings.Lines(string(page)) {
		heading := strings.HasSuffix(strings.TrimSpace(line), "| test |")
		row := inTable && strings.HasPrefix(line, "| ")
		inTable = heading || inTable && strings.HasPrefix(line, "|")
		named := promisedBy.FindAllStringSubmatch(line, -1)
		if row && len(named) == 0 && (excuse == "" || !strings.Contains(line, excuse)) {
			t.Errorf("docs/%s promises without a test: %s", name, line)
		}
		for _, m := range named {
			if !slices.Contains(tests, m[1]) {
				t.Errorf("docs/%s names Test%s, which does not exist", name, m[1])
			}
		}
	}
}

// TestTestsOfReliabilityExist looks for every test that docs/reliability-reference.md names.
func TestTestsOfReliabilityExist(t *testing.T) { checkPage(t, "reliability-reference.md", "") }

// TestTestsOfSecurityExist looks for every test that docs/threat-model.md names. Each row says of one
// subject what it can do, or cannot.
func TestTestsOfSecurityExist(t *testing.T) {
	const page = "threat-model.md"
	checkPage(t, page, "inherent in Kubernetes: ")
	polarity, judged := regexp.MustCompile(`\*\*(can|cannot)\*\*`), 0
	for line := range strings.Lines(content(t, "docs/"+page)) {
		cells := strings.Split(line, " | ")
		head, policy := strings.HasSuffix(line, "| test |\n"), strings.Contains(cells[0], ".yaml`]")
		if !strings.HasPrefix(line, "| ") || len(cells) != 3 || head || policy || cells[0] == "| policy" {
			continue
		}
		judged++
		if len(polarity.FindAllString(cells[0], -1)) != 1 {
			t.Errorf("docs/%s does not say whether it can or cannot: %s", page, cells[0])
		}
	}
	if judged < 150 {
		t.Errorf("the test sees %d rows", judged)
	}
}

// TestTestsOfClustersExist looks for every test that docs/clusters.md names. Each section says what
// was tried, and what was not.
func TestTestsOfClustersExist(t *testing.T) {
	checkPage(t, "clusters.md", "")
	for i, section := range strings.Split(content(t, "docs/clusters.md"), "\n## ") {
		if title, _, _ := strings.Cut(section, "\n"); i > 0 && !strings.Contains(section, "**Tried**") && !strings.Contains(section, "**Untried**") {
			t.Errorf("the section %s does not say what was tried", title)
		}
	}
}
