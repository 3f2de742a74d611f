// Package mutants_test changes the code in one place at a time, and checks that the test which is
// named for the change fails: a test that cannot fail proves nothing. make mutants runs it. That
// the list in mutants.yaml fits the code is checked by make test.
package mutants_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// root is the directory of the repository.
const root = "../.."

// mutant is one wrong change of the code.
type mutant struct {
	Name string `json:"name"`
	// File is changed where it says From, to To.
	File string `json:"file"`
	From string `json:"from"`
	To   string `json:"to"`
	// Test is the package and the name of the test that finds it, with a space between.
	Test string `json:"test"`
	// Beside is what finds it beside that test: "model", "simulation" or nothing.
	Beside string `json:"beside"`
}

// Least is how many mutants there are at least, and leastBeside how many of them model or
// simulation find, too.
const (
	least       = 150
	leastBeside = 36
)

func readMutants(t *testing.T) []mutant {
	t.Helper()
	text, err := os.ReadFile("mutants.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []mutant
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// apply returns the file with the mutant in it, and its path.
func (m mutant) apply(t *testing.T) (path string, changed []byte) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, m.File))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.From); n != 1 || m.From == m.To {
		t.Fatalf("%q: %s holds the text of the mutant %d times, and it has to be changed: %s", m.Name, m.File, n, m.From)
	}
	return path, []byte(strings.Replace(string(text), m.From, m.To, 1))
}

func TestMutantsApplyAndNameTheirTests(t *testing.T) {
	t.Parallel()
	all, beside, seen, tests := readMutants(t), 0, map[string]bool{}, map[string]string{}
	for _, m := range all {
		m.apply(t)
		if seen[m.Name] {
			t.Errorf("two mutants are named %q", m.Name)
		}
		seen[m.Name] = true
		in, test, _ := strings.Cut(m.Test, " ")
		if tests[in] == "" {
			tests[in] = testsOf(t, in)
		}
		if !strings.Contains(tests[in], "\nfunc "+test+"(t ") {
			t.Errorf("%q: there is no test %s in %s", m.Name, test, in)
		}
		switch m.Beside {
		case "model", "simulation":
			beside++
		case "":
		default:
			t.Errorf("%q: beside its test %q is to find it, which is neither model nor simulation", m.Name, m.Beside)
		}
	}
	if len(all) < least || beside < leastBeside {
		t.Errorf("there are %d mutants, %d of them for model or simulation; at least %d and %d are wanted", len(all), beside, least, leastBeside)
	}
}

// testsOf returns the code of a package's tests.
func testsOf(t *testing.T, in string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, in, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
