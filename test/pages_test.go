package test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// excerpt is a fenced block of the README, after a link to the file that it shows.
var excerpt = regexp.MustCompile("(?s)\\]\\(((?:scripts|configmaps)/[\\w./-]+)\\)[^`]*```\\w+\n(.*?)```")

// A reader sees the project's own files, and no others that might not work.
func TestTheREADMEShowsLinesOfItsFiles(t *testing.T) {
	shown := excerpt.FindAllStringSubmatch(content(t, "README.md"), -1)
	if len(shown) != 2 {
		t.Fatalf("the README shows %d files, want a script and a ConfigMap", len(shown))
	}
	for _, m := range shown {
		rest, lines := "\n"+content(t, m[1]), 0
		for line := range strings.Lines(m[2]) {
			_, after, found := strings.Cut(rest, "\n"+line)
			if !found {
				t.Errorf("the README shows %q as a line of %s, which has none after the lines before", line, m[1])
				continue
			}
			rest = "\n" + after
			lines++
		}
		if lines < 8 {
			t.Errorf("the README shows %d lines of %s", lines, m[1])
		}
	}
	if lines := strings.Count(content(t, "README.md"), "\n"); lines > 170 {
		t.Errorf("the README has %d lines: move to docs what a first look does not need", lines)
	}
}

// moved begins a page to which only old links lead.
const moved = "\n\nThis page has moved: ["

// The site's sidebar has what docs/README.md lists, each page under its sort. The pages of the
// recipes and of the decisions list theirs. A page that has moved is not listed.
func TestEachPageOfTheDocsIsListedOnce(t *testing.T) {
	var listed []string
	for _, page := range []string{"docs/README.md", "docs/recipes/README.md", "docs/decisions/README.md"} {
		for _, m := range regexp.MustCompile(`(?m)^\* \[[^\]]+\]\(([^)]+)\)`).FindAllStringSubmatch(content(t, page), -1) {
			listed = append(listed, path.Join(path.Dir(page), m[1]))
		}
	}
	slices.Sort(listed)
	pages := []string{"ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "QUICKSTART.md", "SECURITY.md", "deploy/chart/README.md"}
	for _, page := range tracked(t, ".md") {
		inDocs := strings.HasPrefix(page, "docs/") && page != "docs/README.md"
		if inDocs && !strings.Contains(content(t, page), moved) || page == "findings/README.md" {
			pages = append(pages, page)
		}
	}
	slices.Sort(pages)
	if !slices.Equal(listed, pages) {
		t.Errorf("docs/README.md and the recipes' list\n%q,\nand the pages are\n%q", listed, pages)
	}
}

// A table has a line a row, and a heading one. Neither a link nor a code span is broken.
var (
	oneLine   = regexp.MustCompile(`^\s*(\||#|<|!\[)`)
	unbroken  = regexp.MustCompile("`[^`]*`" + `|\[[^\]]*\]\([^)]*\)`)
	beginning = regexp.MustCompile(`^\s*([*+-] |\d+\. )?`)
)

// A page is read as a diff and in a terminal, too.
func TestLinesOfPagesHave100Columns(t *testing.T) {
	for _, page := range tracked(t, ".md") {
		for line := range strings.Lines(withoutFences(content(t, page))) {
			text := unbroken.ReplaceAllStringFunc(strings.TrimSpace(line), func(span string) string {
				return strings.ReplaceAll(span, " ", "_")
			})
			text = beginning.ReplaceAllString(text, "")
			if utf8.RuneCountInString(line) > 101 && strings.Contains(text, " ") && !oneLine.MatchString(line) {
				t.Errorf("%s: a line has more than 100 columns: %s", page, line)
			}
		}
	}
}
