package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// spec is what ginkgo's report says of one.
type spec struct {
	LeafNodeType, LeafNodeText, State string
	ContainerHierarchyTexts           []string
	Failure                           struct{ Message string }
}

func reported(name, state, message string) spec {
	s := spec{
		LeafNodeType: "It", LeafNodeText: name, State: state,
		ContainerHierarchyTexts: []string{"External Storage [Driver: x]", "[Testpattern: y] volumes"},
	}
	s.Failure.Message = message
	return s
}

// outcome runs outcome.sh on a report, and returns what it printed and whether it accepted the
// report.
func outcome(t *testing.T, skips string, succeeded bool, specs ...spec) (string, bool) {
	t.Helper()
	report, err := json.Marshal([]map[string]any{{"SuiteSucceeded": succeeded, "SpecReports": specs}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "x")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"report": string(report), "skips": skips} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "external/outcome.sh", filepath.Join(dir, "report"), dir).CombinedOutput()
	return string(out), err == nil
}

// A list of skips that nothing compares with the run hides what no longer runs.
func TestExternalSuiteFailsOnAnySkipThatItsListDoesNotSay(t *testing.T) {
	const name = "[Testpattern: y] volumes "
	good := []spec{
		reported("stores data", "passed", ""), reported("snapshots", "skipped", "not supported"), reported("hangs", "skipped", ""),
	}
	other := reported("snapshots", "skipped", "not supported")
	other.ContainerHierarchyTexts = []string{"External Storage [Driver: xx]", "[Testpattern: z] volumes"}
	const skips = "# A reason.\n" + name + "snapshots\n# Another.\n- " + name + "hangs\n"
	for what, c := range map[string]struct {
		skips  string
		specs  []spec
		failed bool
		says   string
	}{
		"as listed":     {skips, good, false, "1 passed, 1 skipped as expected, 1 left out\n"},
		"failed":        {skips, append([]spec{reported("mounts", "failed", "no")}, good...), false, "error: x: not passed: failed\t" + name + "mounts"},
		"ran too long":  {skips, append([]spec{reported("mounts", "interrupted", "")}, good...), false, "error: x: not passed: interrupted\t" + name + "mounts"},
		"new skip":      {skips, append([]spec{reported("new", "skipped", "no")}, good...), false, "error: x: skipped, which is not expected: " + name + "new\n"},
		"no skip":       {skips, append([]spec{reported("snapshots", "passed", "")}, good[0], good[2]), false, "error: x: expected to be skipped, and was not: " + name + "snapshots\n"},
		"unknown":       {skips + "- " + name + "renamed\n", good, false, "error: x: to be left out, and was not: " + name + "renamed\n"},
		"nothing":       {skips, good[1:], false, "error: x: no test: nothing has passed\n"},
		"the suite":     {skips, good, true, "error: x: failed: the suite\n"},
		"of another":    {skips, append([]spec{other}, good...), false, "1 passed, 1 skipped as expected, 1 left out\n"},
		"empty list":    {"", good[:1], false, "1 passed, 0 skipped as expected, 0 left out\n"},
		"skip not said": {"", good[:2], false, "error: x: skipped, which is not expected: " + name + "snapshots\n"},
	} {
		t.Run(what, func(t *testing.T) {
			out, accepted := outcome(t, c.skips, !c.failed, c.specs...)
			if out != c.says && !strings.HasPrefix(out, strings.TrimSuffix(c.says, "\n")) || accepted != strings.Contains(c.says, "passed, ") {
				t.Errorf("accepted: %v, it says:\n%s\nwanted:\n%s", accepted, out, c.says)
			}
		})
	}
}

func TestEverySkipOfTheExternalSuiteHasAReason(t *testing.T) {
	files, err := filepath.Glob("external/*/skips")
	if err != nil || len(files) != 3 {
		t.Fatalf("%d lists, %v", len(files), err)
	}
	for _, file := range files {
		reason, unused, seen := false, false, map[string]bool{}
		for line := range strings.Lines(content(t, "test/"+file)) {
			line = strings.TrimSuffix(line, "\n")
			switch spec := strings.TrimPrefix(line, "- "); {
			case strings.HasPrefix(line, "# "):
				reason, unused = true, true
			case !reason || seen[spec] || !strings.HasPrefix(spec, "[Testpattern: "):
				t.Errorf("%s: without a reason, twice, or no spec: %q", file, line)
			default:
				seen[spec], unused = true, false
			}
		}
		if unused || len(seen) == 0 {
			t.Errorf("%s: a reason without a spec, or nothing at all", file)
		}
	}
}
