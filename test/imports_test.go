// Package test checks the module as a whole: what its packages import, and how large they are.
package test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the module's directory, as seen from this package's.
const root = ".."

const (
	architecture  = "ARCHITECTURE.md"
	importsHeader = "## Imports"
	fence         = "```"
)

// goPackage is what `go list` says of a package: its files and imports without those of tests.
type goPackage struct {
	ImportPath, Name, Dir string
	GoFiles, Imports      []string
	Module                struct{ Path string }
}

// short returns an import path of ours without the module's.
func (p goPackage) short(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, p.Module.Path), "/")
}

// imports returns the packages of this module that p imports, sorted.
func (p goPackage) imports() []string {
	var out []string
	for _, name := range p.Imports {
		if strings.HasPrefix(name, p.Module.Path+"/") {
			out = append(out, p.short(name))
		}
	}
	slices.Sort(out)
	return out
}

// listPackages returns the packages of this module that consist of more than tests.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Dir,GoFiles,Imports,Module", "./...")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var out []goPackage
	for in := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p goPackage
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		if len(p.GoFiles) > 0 {
			dependOn(t, p)
			out = append(out, p)
		}
	}
}

// dependOn makes the cached result of the test depend on a package's files and on the folders where files and packages
// are added. `go test` notes what a test reads itself, not what the go command reads for it.
func dependOn(t *testing.T, p goPackage) {
	t.Helper()
	for _, dir := range []string{filepath.Dir(p.Dir), p.Dir} {
		if _, err := os.ReadDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range p.GoFiles {
		if _, err := os.Stat(filepath.Join(p.Dir, file)); err != nil {
			t.Fatal(err)
		}
	}
}

// graph is what each package imports. It is written one package a line: "dispatcher/decide: contract dispatcher/config".
type graph map[string][]string

// importGraph returns what each package imports.
func importGraph(t *testing.T) graph {
	t.Helper()
	code := graph{}
	for _, p := range listPackages(t) {
		code[p.short(p.ImportPath)] = p.imports()
	}
	return code
}

func (g graph) line(name string) string {
	return strings.TrimSpace(name + ": " + strings.Join(g[name], " "))
}

// parseGraph reads a graph, and returns what is wrong with its text.
func parseGraph(text string) (graph, []string) {
	out, wrong := graph{}, []string(nil)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, imports, found := strings.Cut(line, ":")
		if line == "" {
			continue
		}
		if _, twice := out[name]; twice || !found {
			wrong = append(wrong, "remove the line, which repeats a package or has no colon:\n\t"+line)
			continue
		}
		if out[name] = strings.Fields(imports); line != out.line(name) || !slices.IsSorted(out[name]) {
			slices.Sort(out[name])
			wrong = append(wrong, "write with single spaces and sorted imports:\n\t"+out.line(name))
		}
	}
	return out, wrong
}

// compareGraphs returns what has to change so that what the code imports is what is written.
func compareGraphs(code, written graph) []string {
	var out []string
	for name := range code {
		_, known := written[name]
		missing, stale := without(code[name], written[name]), without(written[name], code[name])
		switch {
		case !known:
			out = append(out, "add the line:\n\t"+code.line(name))
		case len(missing) > 0:
			out = append(out, name+" imports "+strings.Join(missing, " ")+", which is not allowed: remove the import, or replace its line by:\n\t"+code.line(name))
		case len(stale) > 0:
			out = append(out, name+" does not import "+strings.Join(stale, " ")+": replace its line by:\n\t"+code.line(name))
		}
	}
	for name := range written {
		if _, exists := code[name]; !exists {
			out = append(out, "remove the line of a package that does not exist:\n\t"+written.line(name))
		}
	}
	slices.Sort(out)
	return out
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(some, name) })
}

// fencedBlock returns the first fenced block of a section of a page.
func fencedBlock(page, header string) (block string, found bool) {
	_, section, found := strings.Cut(page, "\n"+header+"\n")
	if !found {
		return "", false
	}
	section, _, _ = strings.Cut(section, "\n## ")
	_, block, opened := strings.Cut(section, "\n"+fence)
	_, block, _ = strings.Cut(block, "\n") // the language of the block
	block, _, closed := strings.Cut(block, fence)
	return block, opened && closed
}

func TestPackagesImportWhatArchitectureAllows(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, architecture))
	if err != nil {
		t.Fatal(err)
	}
	block, found := fencedBlock(string(page), importsHeader)
	if !found {
		t.Fatalf("%s has no fenced block under %q", architecture, importsHeader)
	}
	written, wrong := parseGraph(block)
	for _, change := range append(wrong, compareGraphs(importGraph(t), written)...) {
		t.Errorf("%s, %q: %s", architecture, importsHeader, change)
	}
}

// TestNoPackageImportsTest keeps what is not product out of the product: what stands under test is
// imported from there, and by files of tests.
func TestNoPackageImportsTest(t *testing.T) {
	for _, wrong := range importsOfTest(importGraph(t)) {
		t.Error(wrong)
	}
}

// importsOfTest returns the imports of packages under test by packages that are not.
func importsOfTest(code graph) []string {
	var out []string
	for name, imports := range code {
		for _, imported := range imports {
			if !isUnderTest(name) && isUnderTest(imported) {
				out = append(out, name+" imports "+imported+", which is not product")
			}
		}
	}
	slices.Sort(out)
	return out
}

func isUnderTest(name string) bool { return name == "test" || strings.HasPrefix(name, "test/") }

func TestImportsOfTestAreReported(t *testing.T) {
	got := importsOfTest(graph{"try": {"test/fake", "testing"}, "test/sim": {"test/fake", "try"}, "test/fake": nil, "testing": {"test"}})
	want := []string{"testing imports test, which is not product", "try imports test/fake, which is not product"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEveryDifferenceOfTheImportGraphIsReported(t *testing.T) {
	code := graph{"contract": nil, "decide": {"contract"}, "cmd": {"contract", "decide"}}
	for name, test := range map[string]struct{ written, want string }{
		"equal":              {"contract:\n\ncmd: contract decide\ndecide: contract\n", ""},
		"a package is new":   {"contract:\ndecide: contract", "add the line:\n\tcmd: contract decide"},
		"a package is gone":  {"contract:\ndecide: contract\ncmd: contract decide\nold: contract", "remove the line of a package that does not exist:\n\told: contract"},
		"an import is new":   {"contract:\ndecide:\ncmd: contract decide", "decide imports contract, which is not allowed: remove the import, or replace its line by:\n\tdecide: contract"},
		"an import is gone":  {"contract: decide\ndecide: contract\ncmd: contract decide", "contract does not import decide: replace its line by:\n\tcontract:"},
		"imports unsorted":   {"contract:\ndecide: contract\ncmd: decide contract", "write with single spaces and sorted imports:\n\tcmd: contract decide"},
		"a package is twice": {"contract:\ndecide: contract\ncmd: contract decide\ndecide:", "remove the line, which repeats a package or has no colon:\n\tdecide:"},
	} {
		t.Run(name, func(t *testing.T) {
			written, wrong := parseGraph(test.written)
			if got := strings.Join(append(wrong, compareGraphs(code, written)...), "\n"); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}
