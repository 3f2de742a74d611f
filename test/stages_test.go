package test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	stageTests = regexp.MustCompile(`(?m)^OF_[A-Z_]+='(.*)'$`)
	longTest   = regexp.MustCompile(`(?m)^func (Test\w+)`)
)

// Each test that make e2e leaves out for its length is run by a stage of make e2e-long, and so are
// those of storms.
func TestEveryLongTestHasAStage(t *testing.T) {
	script, err := os.ReadFile("../hack/e2e-long.sh")
	if err != nil {
		t.Fatal(err)
	}
	stages := []string{"InAStorm"}
	for _, m := range stageTests.FindAllStringSubmatch(string(script), -1) {
		stages = append(stages, m[1])
	}
	run, found := regexp.MustCompile(strings.Join(stages, "|")), 0
	for _, file := range tracked(t, "_test.go") {
		text, err := os.ReadFile("../" + file)
		if err != nil {
			t.Fatal(err)
		}
		if tags, _, _ := strings.Cut(string(text), "\n"); tags != "//go:build e2e && long" && tags != "//go:build e2e && storms" {
			continue
		}
		for _, m := range longTest.FindAllStringSubmatch(string(text), -1) {
			if found++; !run.MatchString(m[1]) {
				t.Errorf("%s: no stage of hack/e2e-long.sh runs %s", file, m[1])
			}
		}
	}
	if found < 8 {
		t.Errorf("only %d long tests", found)
	}
}
