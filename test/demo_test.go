package test

import (
	"regexp"
	"slices"
	"testing"
)

// docs/how-it-works.md shows what make demo prints. Numbers and IDs differ each time, and its
// headings do not.
func TestThePageShowsTheStoryOfTheDemo(t *testing.T) {
	titles := func(text, pattern string) (out []string) {
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			out = append(out, found[1])
		}
		return out
	}
	shown, told := titles(content(t, "docs/how-it-works.md"), `(?m)^--- (.*)$`), titles(content(t, "hack/demo-claims.sh"), `(?m)^title "(.*)"$`)
	if len(told) < 5 || !slices.Equal(shown, told) {
		t.Errorf("docs/how-it-works.md shows %q, and the demo prints %q", shown, told)
	}
	steps := titles(content(t, "hack/demo.sh"), `(?m)^  "([^|"]*)\|\d+\|`)
	if shown := titles(content(t, "docs/how-it-works.md"), `(?m)^\[\d/6\] (.*?)  `); len(steps) != 6 || !slices.Equal(shown, steps) {
		t.Errorf("docs/how-it-works.md shows the steps %q, and the demo has %q", shown, steps)
	}
}
