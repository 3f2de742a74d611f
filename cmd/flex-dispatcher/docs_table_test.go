package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the repository, seen from this package's tests.
const root = "../.."

// The pages whose tables are compared with the code.
const (
	contractPage      = "docs/contract.md"
	configurationPage = "docs/configuration.md"
	troubleshootPage  = "docs/troubleshoot.md"
	firstImagePage    = "docs/first-image.md"
)

// table is one of a page, found by the first cell of its header.
type table struct {
	page, name string
	columns    int
	rows       [][]string
}

// tableOf finds a table. The first cells of headers are unique in a page, so that a message can
// name one.
func tableOf(t *testing.T, page, name string) table {
	t.Helper()
	var found []table
	header := false
	for line := range strings.Lines(pageText(t, page)) {
		cells := cellsOf(line)
		switch {
		case cells == nil:
			header = false
		case !header:
			header = true
			found = append(found, table{page: page, name: cells[0], columns: len(cells)})
		case !strings.HasPrefix(cells[0], "---"):
			last := &found[len(found)-1]
			last.rows = append(last.rows, cells)
		}
	}
	found = slices.DeleteFunc(found, func(one table) bool { return one.name != name })
	if len(found) != 1 {
		t.Fatalf("%s has %d tables whose header begins with | %s |, want one", page, len(found), name)
	}
	for _, row := range found[0].rows {
		if len(row) != found[0].columns {
			t.Errorf("%s, table | %s |: the row %q has %d cells, want %d", page, name, row[0], len(row), found[0].columns)
		}
	}
	return found[0]
}

func pageText(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// cellsOf splits a line of a table, and returns nil for any other line.
func cellsOf(line string) []string {
	line, found := strings.CutPrefix(strings.TrimSpace(line), "|")
	if !found {
		return nil
	}
	var cells []string
	for cell := range strings.SplitSeq(strings.TrimSuffix(line, "|"), "|") {
		cells = append(cells, strings.TrimSpace(cell))
	}
	return cells
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// spans returns what a cell shows as code.
func spans(cell string) []string {
	var out []string
	for _, m := range codeSpan.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

// names returns what a column shows as code, with the number of rows that do.
func (tb table) names(column int) map[string]int {
	out := map[string]int{}
	for _, row := range tb.rows {
		for _, name := range spans(row[column]) {
			out[name]++
		}
	}
	return out
}

// mustList compares a column with what the code has, by name and the place where it is declared. It reports
// each difference, with what to write where.
func (tb table) mustList(t *testing.T, column int, code map[string]string) {
	t.Helper()
	listed := tb.names(column)
	for _, name := range slices.Sorted(maps.Keys(code)) {
		if listed[name] == 0 {
			t.Errorf("%s, table | %s |: lacks `%s` (%s). Add the row: %s", tb.page, tb.name, name, code[name], tb.rowFor(column, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		switch {
		case code[name] == "":
			t.Errorf("%s, table | %s |: has `%s`, which the code has not. Remove its row, or correct the name", tb.page, tb.name, name)
		case listed[name] > 1:
			t.Errorf("%s, table | %s |: has `%s` %d times. Keep one row", tb.page, tb.name, name, listed[name])
		}
	}
}

func (tb table) rowFor(column int, name string) string {
	cells := make([]string, tb.columns)
	for i := range cells {
		cells[i] = "…"
	}
	cells[column] = "`" + name + "`"
	return "| " + strings.Join(cells, " | ") + " |"
}

// mustDefault compares the column of defaults with the code's, by the name in the first column. An empty
// default is described in words.
func (tb table) mustDefault(t *testing.T, column int, defaults map[string]string) {
	t.Helper()
	for _, row := range tb.rows {
		for _, name := range spans(row[0]) {
			want, known := defaults[name]
			said := append(spans(row[column]), "")[0]
			if known && said != want {
				t.Errorf("%s, table | %s |: `%s` has the default `%s`; in the code it is `%s`", tb.page, tb.name, name, said, want)
			}
		}
	}
}

// from says of each name that it comes from one place.
func from(place string, names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		out[name] = place
	}
	return out
}

// section is the text between a heading and the next one.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(pageText(t, page), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// block is the first block of a language in a text.
func block(t *testing.T, text, language string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, "```"+language+"\n")
	code, _, ends := strings.Cut(rest, "```")
	if !found || !ends {
		t.Fatalf("no block of %s", language)
	}
	return code
}
