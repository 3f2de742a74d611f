//go:build mutants

package mutants_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// finder is a test that finds mutants.
type finder struct {
	in, test string
	// shows matches what its output says when it has found something, and where.
	shows *regexp.Regexp
}

// beside are model and simulation. They are packages of their own, so no test that is named for a mutant takes part in them.
var beside = map[string]finder{
	"model": {
		in: "test/model", test: "TestModelFindsEveryKnownDefectAndNoOther",
		shows: regexp.MustCompile(`finds a defect that is not listed.*\n.*(world "[^"]+")`),
	},
	"simulation": {
		in: "test/sim", test: "TestSeedsComeToRestAndLoseNothing",
		shows: regexp.MustCompile(`--- FAIL: TestSeedsComeToRestAndLoseNothing/(\d{1,5}) `),
	},
}

// seeds is how many seeds the simulation tries with each mutant. A fifth as many that were never tried are simulated after them.
const seeds = "300"

// named returns the test that is named for a mutant.
func (m mutant) named() finder {
	in, test, _ := strings.Cut(m.Test, " ")
	return finder{in: in, test: test, shows: regexp.MustCompile(`--- FAIL: (` + test + `) `)}
}

// goTest runs tests of a package, with what says which, and returns what they say, and how long they have used a processor.
func goTest(in string, flags ...string) (said string, used time.Duration, err error) {
	run := exec.Command("go", append(append([]string{"test", "-vet=off", "-ldflags=-s", "-count=1", "-timeout=10m", "-failfast"}, flags...), "./"+in)...)
	run.Dir, run.Env = root, append(os.Environ(), "SIM_SEEDS="+seeds)
	out, err := run.CombinedOutput()
	return string(out), run.ProcessState.UserTime() + run.ProcessState.SystemTime(), err
}

// TestNamedTestsPassWithoutAMutant: one that fails anyhow would find every mutant.
func TestNamedTestsPassWithoutAMutant(t *testing.T) {
	tests := map[string][]string{}
	for _, m := range readMutants(t) {
		one := m.named()
		tests[one.in] = append(tests[one.in], one.test)
	}
	for in, names := range tests {
		if said, _, err := goTest(in, "-run=^("+strings.Join(names, "|")+")$"); err != nil {
			t.Errorf("%s: %s", in, said)
		}
	}
	for _, f := range beside {
		if said, _, err := goTest(f.in, "-run=^"+f.test+"$"); f.shows.MatchString(said) {
			t.Errorf("%s: %v\n%s", f.in, err, said)
		}
	}
}

// TestMutantsAreFound compiles each mutant with the tests that are to find it. One that does not compile proves nothing, and fails.
func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	all := readMutants(t)
	results := make([]result, len(all))
	t.Run("each", func(t *testing.T) {
		for i, m := range all {
			t.Run(m.Name, func(t *testing.T) {
				t.Parallel()
				overlay := m.overlay(t)
				results[i].mutant, results[i].named = m, m.named().find(t, overlay)
				if m.Beside != "" {
					results[i].beside = beside[m.Beside].find(t, overlay)
				}
			})
		}
	})
	t.Log("\n" + table(results))
}

// overlay writes what go test -overlay reads, which takes one file for another.
func (m mutant) overlay(t *testing.T) string {
	t.Helper()
	path, changed := m.apply(t)
	dir := t.TempDir()
	instead := filepath.Join(dir, filepath.Base(path))
	text, err := json.Marshal(map[string]map[string]string{"Replace": {path: instead}})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	for name, content := range map[string][]byte{instead: changed, overlay: text} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}

// find runs the test with an overlay, and fails unless it finds something.
func (f finder) find(t *testing.T, overlay string) finding {
	t.Helper()
	said, used, err := goTest(f.in, "-p=1", "-overlay="+overlay, "-run=^"+f.test+"$")
	shown := f.shows.FindStringSubmatch(said)
	out := finding{used: used}
	switch {
	case strings.Contains(said, "[build failed]"), strings.Contains(said, "[setup failed]"):
		t.Errorf("it does not compile:\n%s", said)
	case err == nil || shown == nil:
		t.Errorf("%s in %s does not find it:\n%s", f.test, f.in, said)
	default:
		out.by = f.in + " " + shown[1]
		t.Logf("found by %s, in %.0f s of a processor", out.by, used.Seconds())
	}
	return out
}
