package test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// incident finds the words for what happened once. "At once" is another word.
	incident = regexp.MustCompile(`(?i)(?:\bat )?\bonce ` + past + `\b|` +
		`\b(?:was|were|could) once ` + participle + `\b`)
	// nameOfTest finds the names of tests in a comment.
	nameOfTest = regexp.MustCompile(`\bTest[A-Z]\w+`)
)

const (
	past = `(?:had|was|were|took|made|lost|got|held|kept|went|hung|wrote|read|came|cost|stood|` +
		`hid|ran|began|fell|left|could|showed|\w+ed)`
	participle = `(?:` + past + `|have|taken|done|given|written|said|seen)`
)

// incidentsWithoutTest returns of a file's comments those that tell an incident and name no test,
// by the line where they begin, each with what is wrong.
func incidentsWithoutTest(path, text string, tests []string) map[int]string {
	found := map[int]string{}
	for line, comment := range comments(path, text) {
		if !tellsIncident(comment) {
			continue
		}
		names := nameOfTest.FindAllString(comment, -1)
		if len(names) == 0 {
			found[line] = "names no test that plays what happened"
		}
		for _, name := range names {
			if !slices.Contains(tests, strings.TrimPrefix(name, "Test")) {
				found[line] = "names " + name + ", which does not exist"
			}
		}
	}
	return found
}

func tellsIncident(comment string) bool {
	return slices.ContainsFunc(incident.FindAllString(comment, -1), func(found string) bool {
		return !strings.HasPrefix(strings.ToLower(found), "at ")
	})
}

// comments returns the comments of a file in one line each, by the line where they begin.
func comments(path, text string) map[int]string {
	sign := "#"
	if strings.HasSuffix(path, ".go") {
		sign = "//"
	}
	out := map[int]string{}
	begin := 0 // of a comment that has lines of its own
	for i, line := range strings.Split(text, "\n") {
		_, comment, isComment := strings.Cut(" "+strings.TrimSpace(line), " "+sign)
		switch {
		case !isComment:
			begin = 0
		case !strings.HasPrefix(strings.TrimSpace(line), sign):
			begin, out[i+1] = 0, comment
		case begin == 0:
			begin, out[i+1] = i+1, comment
		default:
			out[begin] += comment
		}
	}
	return out
}

func TestCommentsNameTheTestOfAnIncident(t *testing.T) {
	tests := testNames(t)
	for _, path := range tracked(t, ".go", ".sh", ".yaml", ".yml") {
		if strings.HasSuffix(path, "_test.go") {
			continue // its reader stands in the test
		}
		for line, fault := range incidentsWithoutTest(path, content(t, path), tests) {
			t.Errorf("%s:%d: the comment tells an incident and %s. Without a test, say why, "+
				"and not what happened", path, line, fault)
		}
	}
}

func TestIncidentsWithoutATestAreSeen(t *testing.T) {
	const code = `package a

// Free reports whether a slot is free. One was once
// kept for ever.
func Free() bool {
	return true // a leader once lost it
}

// Held was once held (TestThatPlaysIt).
// It once took (TestThatIsNone) long.

// A Job once hung (TestThatPlaysIt).
// It writes once, ends at once, stays once it is written, and begins at once when asked.
var x = "it once took long"
`
	const script = "set -e # it once failed\n# " + `a "#" once had no test` + "\n"
	for path, want := range map[string]map[int]string{
		"a.go": {3: "names no test", 6: "names no test", 9: "names TestThatIsNone, which"},
		"a.sh": {1: "names no test", 2: "names no test"},
	} {
		text := map[string]string{"a.go": code, "a.sh": script}[path]
		got := incidentsWithoutTest(path, text, []string{"ThatPlaysIt"})
		if len(got) != len(want) {
			t.Errorf("%s: found %v, want %v", path, got, want)
		}
		for line, fault := range want {
			if !strings.HasPrefix(got[line], fault) {
				t.Errorf("%s:%d: found %q, want %q", path, line, got[line], fault)
			}
		}
	}
}
