package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// namedIn finds "`name`, `other` in [`file`](path)".
	namedIn = regexp.MustCompile("((?:`[\\w.]+`(?:, )?)+) in \\[`[^`]+`\\]\\(([^)#]+\\.go)\\)")
	quoted  = regexp.MustCompile("`([\\w.]+)`")
)

// TestFunctionsThatArchitectureNamesExist looks for each function in the file that ARCHITECTURE.md, or
// a page of docs/decisions, says it is in.
func TestFunctionsThatArchitectureNamesExist(t *testing.T) {
	text := content(t, "ARCHITECTURE.md")
	for _, page := range tracked(t, ".md") {
		if strings.HasPrefix(page, "docs/decisions/") {
			text += strings.ReplaceAll(strings.ReplaceAll(content(t, page), "\n", " "), "](../../", "](")
		}
	}
	found := namedIn.FindAllStringSubmatch(text, -1)
	if len(found) < 12 {
		t.Fatalf("the pages name functions in %d places: has their form changed?", len(found))
	}
	for _, m := range found {
		code, err := os.ReadFile(filepath.Join(repository, m[2]))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range quoted.FindAllStringSubmatch(m[1], -1) {
			function := name[1][strings.LastIndexByte(name[1], '.')+1:]
			if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + function + `[\[(]`).Match(code) {
				t.Errorf("a page says that %s is in %s, which has no such function", name[1], m[2])
			}
		}
	}
}
