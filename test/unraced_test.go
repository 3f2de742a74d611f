package test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	makeVariable = regexp.MustCompile(`(?m)^(\w+) := (.*)$`)
	makeUse      = regexp.MustCompile(`\$\((\w+)\)`)
	unracedRun   = regexp.MustCompile(`(?m)^\t\$\(GO_TEST\) -run '\$\(SLOW\)' ([^#\n]+)`)
)

// Each test that make test does not run with the race detector is run without it: none has the name
// of another package's, and is run by neither.
func TestWhatIsNotRacedIsRunWithoutTheRaceDetector(t *testing.T) {
	makefile := content(t, "Makefile")
	variables := map[string]string{}
	for _, m := range makeVariable.FindAllStringSubmatch(makefile, -1) {
		variables[m[1]] = makeUse.ReplaceAllStringFunc(m[2], func(use string) string { return variables[makeUse.FindStringSubmatch(use)[1]] })
	}
	slow := regexp.MustCompile(variables["SLOW"])
	var packages, found []string
	for _, m := range unracedRun.FindAllStringSubmatch(makefile, -1) {
		packages = append(packages, strings.Fields(m[1])...)
	}
	for _, file := range tracked(t, "_test.go") {
		text := content(t, file)
		in := "./" + path.Dir(file)
		for _, m := range longTest.FindAllStringSubmatch(text, -1) {
			switch {
			case !slow.MatchString(m[1]) || strings.HasPrefix(text, "//go:build "):
			case slices.Contains(packages, in):
				found = append(found, in)
			default:
				t.Errorf("%s: make test runs %s neither with the race detector nor without", file, m[1])
			}
		}
	}
	for _, in := range packages {
		if !slices.Contains(found, in) {
			t.Errorf("make test runs %s without the race detector, which has no test for it", in)
		}
	}
	if len(packages) == 0 {
		t.Error("make test runs no package without the race detector: is its line another?")
	}
}
