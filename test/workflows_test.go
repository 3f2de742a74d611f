package test

import (
	"regexp"
	"strings"
	"testing"
)

var (
	uses   = regexp.MustCompile(`(?m)^\s*(?:- )?uses: (.+)$`)
	pinned = regexp.MustCompile(`^[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
)

// A tag of an action can be moved to another commit, which then has the login of the registry.
// Renovate reads the comment.
func TestActionsAreNamedByTheirCommit(t *testing.T) {
	found := 0
	for _, file := range tracked(t, ".yaml") {
		if !strings.HasPrefix(file, ".github/workflows/") {
			continue
		}
		for _, m := range uses.FindAllStringSubmatch(content(t, file), -1) {
			found++
			if !pinned.MatchString(m[1]) && !strings.HasPrefix(m[1], "./.github/workflows/") {
				t.Errorf("%s uses %s: write the commit, and the version behind it as a comment", file, m[1])
			}
		}
	}
	if found < 6 {
		t.Errorf("the workflows use %d actions: the test does not see them", found)
	}
}

// What an outsider's change is judged by is what a maintainer runs.
func TestCIRunsTheTargetsOfItsScript(t *testing.T) {
	all := regexp.MustCompile(`set -- ([a-z0-9 ]+)\n`).FindStringSubmatch(content(t, ".ci/run"))
	workflow := content(t, ".github/workflows/ci.yaml")
	targets := regexp.MustCompile(`target: \[([a-z0-9, ]+)\]`).FindStringSubmatch(workflow)
	if all == nil || targets == nil || !strings.Contains(workflow, "run: .ci/run ${{ matrix.target }}") {
		t.Fatal("ci.yaml does not call .ci/run with its targets")
	}
	for target := range strings.SplitSeq(targets[1], ", ") {
		if !strings.Contains(" "+all[1]+" ", " "+target+" ") {
			t.Errorf(".ci/run has no target %s", target)
		}
	}
}
