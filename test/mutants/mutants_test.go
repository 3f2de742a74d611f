//go:build mutants

package mutants_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// finder is a test that finds mutants.
type finder struct {
	in, test string
	// shows matches two lines of its output when it has found something, and says where.
	shows *regexp.Regexp
}

// beside are model and simulation. They are packages of their own, so no test that is named for a
// mutant takes part in them. A seed that keeps all laws prints nothing.
var beside = map[string]finder{
	"model": {
		in: "test/model", test: "TestModelFindsEveryKnownDefectAndNoOther",
		shows: regexp.MustCompile(`finds a defect that is not listed.*\n.*(world "[^"]+")`),
	},
	"simulation": {
		in: "test/sim", test: "TestSeedsComeToRestAndLoseNothing",
		shows: regexp.MustCompile(`=== (?:CONT|NAME) +TestSeedsComeToRestAndLoseNothing/(\d{1,5})\n +\w+\.go:\d+: `),
	},
}

// seeds is how many seeds the simulation tries with each mutant, until one finds it.
const seeds = "300"

// named returns the test that is named for a mutant.
func (m mutant) named() finder {
	in, test, _ := strings.Cut(m.Test, " ")
	return finder{in: in, test: test, shows: regexp.MustCompile(`--- FAIL: (` + test + `) `)}
}

// TestNamedTestsPassWithoutAMutant: one that fails anyhow would find every mutant.
func TestNamedTestsPassWithoutAMutant(t *testing.T) {
	tests := map[string][]string{}
	for _, m := range readMutants(t) {
		one := m.named()
		tests[one.in] = append(tests[one.in], one.test)
	}
	for in, names := range tests {
		all := finder{in: in, test: "(" + strings.Join(names, "|") + ")", shows: regexp.MustCompile(`--- FAIL: (\w+)`)}
		all.mustPass(t, names...)
	}
	for _, f := range beside {
		f.mustPass(t, f.test)
	}
}

// mustPass runs the tests of a finder, and fails unless each of them has run and passed.
func (f finder) mustPass(t *testing.T, tests ...string) {
	t.Helper()
	by, said, err := f.find(t, new(cost))
	if err := whyNotPassed(tests, said, err); err != nil {
		t.Errorf("%s without a mutant: %v; shown: %q\n%s", f.in, err, by, said)
	}
}

// TestMutantsAreFound compiles each mutant with the tests that are to find it. One that does not
// compile proves nothing, and fails.
func TestMutantsAreFound(t *testing.T) { //nolint:tparallel // the group ends before the table is printed
	t.Parallel()
	all := readMutants(t)
	results := make([]result, len(all))
	t.Run("each", func(t *testing.T) {
		for i, m := range all {
			t.Run(m.Name, func(t *testing.T) {
				t.Parallel()
				overlay := m.overlay(t)
				results[i].mutant, results[i].named = m, m.named().mustFind(t, overlay)
				if m.Beside != "" {
					results[i].beside = beside[m.Beside].mustFind(t, overlay)
				}
			})
		}
	})
	if !slices.ContainsFunc(results, func(r result) bool { return r.mutant.Name != "" }) {
		t.Error("no mutant has the name that is asked for")
	}
	t.Log("\n" + table(results))
}

// overlay writes what go test -overlay reads, which takes one file for another, and returns the
// flag.
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
	return "-overlay=" + overlay
}

// mustFind runs the test with an overlay, and fails unless it finds something.
func (f finder) mustFind(t *testing.T, overlay string) finding {
	t.Helper()
	var out finding
	by, said, err := f.find(t, &out.cost, overlay)
	if by == "" {
		t.Errorf("%s in %s does not find it (%v):\n%s", f.test, f.in, err, said)
		return out
	}
	out.by = f.in + " " + by
	t.Logf("found by %s, in %.0f s of a processor", out.by, out.cost.seconds())
	return out
}

// find compiles the test, with flags, and runs it until it shows what it has found. It returns
// that, or nothing, the output, and how the run has ended.
func (f finder) find(t *testing.T, used *cost, flags ...string) (by, said string, ended error) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "test")
	compile := exec.Command("go", append([]string{"test", "-c", "-vet=off", "-ldflags=-s", "-p=1", "-o", binary}, append(flags, "./"+f.in)...)...)
	compile.Dir = root
	out, err := compile.CombinedOutput()
	used.add(compile)
	if err != nil {
		t.Fatalf("%s does not compile: %v\n%s", f.in, err, out)
	}
	run := exec.Command(binary, "-test.v", "-test.timeout=10m", "-test.run=^"+f.test+"$")
	run.Dir, run.Env = filepath.Join(root, f.in), append(os.Environ(), "SIM_SEEDS="+seeds)
	output, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	run.Stderr = run.Stdout
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	by, said, err = f.read(output)
	if by != "" || err != nil {
		_ = run.Process.Kill() // it may have ended
	}
	ended = errors.Join(err, run.Wait())
	used.add(run)
	return by, said, ended
}

// read reads the output of the test until it shows what has been found, or to its end.
func (f finder) read(output io.Reader) (by, said string, err error) {
	var all strings.Builder
	before, lines := "", bufio.NewScanner(output)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		line := lines.Text()
		all.WriteString(line + "\n")
		if shown := f.shows.FindStringSubmatch(before + "\n" + line); shown != nil {
			return shown[1], all.String(), nil
		}
		before = line
	}
	return "", all.String(), lines.Err()
}
