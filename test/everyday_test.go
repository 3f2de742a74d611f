package test

import (
	"regexp"
	"strings"
	"testing"
)

var (
	// reportOf finds "owner/name#12".
	reportOf = regexp.MustCompile(`[\w.-]+/[\w.-]+#\d+`)
	// rowOfLog finds a row of the log, whose first column is its number.
	rowOfLog = regexp.MustCompile(`(?m)^\| \d+ \|(.*)$`)
)

// The log of what is reported of other provisioners names a report, a verdict and an existing test
// in each row, and each test that was written for a report.
func TestLogOfReportsNamesItsTests(t *testing.T) {
	checkPage(t, "../test/everyday.md", "")
	log := content(t, "test/everyday.md")
	rows := rowOfLog.FindAllStringSubmatch(log, -1)
	if len(rows) < 60 {
		t.Errorf("the log has %d rows, and 60 reports were to be tried", len(rows))
	}
	for _, row := range rows {
		if cells := strings.Split(row[1], " | "); len(cells) != 5 || !reportOf.MatchString(cells[0]) || cells[3] == "" {
			t.Errorf("a row of the log does not have a report, two accounts, a verdict and a test: %s", row[0])
		}
	}
	found := 0
	for _, file := range tracked(t, "_test.go") {
		text := content(t, file)
		if !strings.HasPrefix(text, "//go:build e2e && everyday") {
			continue
		}
		for _, m := range longTest.FindAllStringSubmatch(text, -1) {
			if found++; !strings.Contains(log, "`"+m[1]+"`") {
				t.Errorf("the log does not name %s of %s", m[1], file)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d tests were written for reports", found)
	}
}
