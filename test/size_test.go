package test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// The largest that code may be, in lines, without blank lines and comments. Of test files only the functions are measured that are no tests.
const (
	maxPackage  = 1250
	maxFunction = 60
	maxMedian   = 10
)

// tooLarge are the packages that are larger than maxPackage, each with the number of lines that it may have.
var tooLarge = map[string]int{
	"dispatcher/decide":    1460, // its rules are methods of one View
	"dispatcher/observe":   1400, // its facts are of one Observation
	"internal/fakecluster": 2840, // code of tests only

	"provisioner-image/cinder": 1320, // its steps are methods of one Backend
}

// withoutDoc are the packages without a doc.go.
var withoutDoc = []string{
	"cmd/flex-dispatcher",
}

// function is a function with a body, and how many lines of code it has from `func` to its last brace.
type function struct {
	name  string
	lines int
}

// size is how much code a package has.
type size struct {
	lines     int
	functions []function
	hasDoc    bool
}

func (s size) longest() function {
	var out function
	for _, f := range s.functions {
		if f.lines > out.lines {
			out = f
		}
	}
	return out
}

// median returns the number of lines that half of the functions do not exceed.
func median(functions []function) int {
	if len(functions) == 0 {
		return 0
	}
	sorted := slices.SortedFunc(slices.Values(functions), func(a, b function) int { return cmp.Compare(a.lines, b.lines) })
	return sorted[len(sorted)/2].lines
}

// codeLines returns which lines of a file have code. A line that a string continues over has.
func codeLines(source []byte) map[int]bool {
	files, out := token.NewFileSet(), map[int]bool{}
	file := files.AddFile("", files.Base(), len(source))
	var in scanner.Scanner
	in.Init(file, source, nil, 0)
	for {
		pos, kind, text := in.Scan()
		if kind == token.EOF {
			return out
		}
		if kind == token.SEMICOLON && text == "\n" {
			continue // it is not written
		}
		first := file.Line(pos)
		for line := first; line <= first+strings.Count(text, "\n"); line++ {
			out[line] = true
		}
	}
}

// addFile adds the code of one file.
func (s *size) addFile(t *testing.T, name string) {
	t.Helper()
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, name, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	lines := codeLines(source)
	s.lines += len(lines)
	s.hasDoc = s.hasDoc || filepath.Base(name) == "doc.go" && tree.Doc.Text() != ""
	for _, decl := range tree.Decls {
		f, is := decl.(*ast.FuncDecl)
		if !is || f.Body == nil {
			continue
		}
		here := function{name: f.Name.Name}
		for line := files.Position(f.Pos()).Line; line <= files.Position(f.End()).Line; line++ {
			if lines[line] {
				here.lines++
			}
		}
		s.functions = append(s.functions, here)
	}
}

// measure returns the size of every package of this module.
func measure(t *testing.T) map[string]size {
	t.Helper()
	out := map[string]size{}
	for _, p := range listPackages(t) {
		var s size
		for _, file := range p.GoFiles {
			s.addFile(t, filepath.Join(p.Dir, file))
		}
		out[p.short(p.ImportPath)] = s
	}
	return out
}

// table formats the sizes of packages, the largest first.
func table(sizes map[string]size) string {
	var out strings.Builder
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	row := func(name string, s size) {
		longest := s.longest()
		_, _ = fmt.Fprintf(columns, "%s\t%d\t%d\t%d\t%d\t%s\n", name, s.lines, len(s.functions), median(s.functions), longest.lines, longest.name)
	}
	_, _ = fmt.Fprintln(columns, "package\tcode lines\tfunctions\tmedian\tlongest\t")
	names := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b].lines, sizes[a].lines), cmp.Compare(a, b))
	})
	for _, name := range names {
		row(name, sizes[name])
	}
	row("all", total(sizes))
	_ = columns.Flush()
	return out.String()
}

func total(sizes map[string]size) size {
	var out size
	for _, s := range sizes {
		out.lines += s.lines
		out.functions = append(out.functions, s.functions...)
	}
	return out
}

// violations returns what is larger than allowed or lacks its documentation, and which exceptions are not needed.
func violations(sizes map[string]size, large map[string]int, undocumented []string) []string {
	var out []string
	report := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for name, s := range sizes {
		if most := max(maxPackage, large[name]); s.lines > most {
			report("%s has %d lines of code, at most %d are allowed: split it", name, s.lines, most)
		}
		if !s.hasDoc && !slices.Contains(undocumented, name) {
			report("%s has no doc.go with a package comment: say there what it holds, what it may not do, where to start reading", name)
		}
		for _, f := range s.functions {
			if f.lines > maxFunction {
				report("%s: the function %s has %d lines of code, at most %d are allowed: split it", name, f.name, f.lines, maxFunction)
			}
		}
	}
	if m := median(total(sizes).functions); m > maxMedian {
		report("the median function has %d lines of code, at most %d are allowed", m, maxMedian)
	}
	for name, lines := range large {
		if s, exists := sizes[name]; !exists || s.lines <= maxPackage || lines <= maxPackage {
			report("tooLarge: remove %s, which needs no exception", name)
		}
	}
	for _, name := range undocumented {
		if s, exists := sizes[name]; !exists || s.hasDoc {
			report("withoutDoc: remove %s, which needs no exception", name)
		}
	}
	slices.Sort(out)
	return out
}

func TestPackagesAndFunctionsAreSmall(t *testing.T) {
	sizes := measure(t)
	t.Logf("\n%s", table(sizes))
	for _, wrong := range violations(sizes, tooLarge, withoutDoc) {
		t.Error(wrong)
	}
}

// longInTests returns which functions of a test file are longer than allowed, but for the tests themselves: the table of one is data.
func longInTests(path string, functions []function) []string {
	var out []string
	for _, f := range functions {
		isTest := slices.ContainsFunc([]string{"Test", "Fuzz", "Benchmark"}, func(kind string) bool { return strings.HasPrefix(f.name, kind) })
		if f.lines > maxFunction && !isTest {
			out = append(out, fmt.Sprintf("%s: the function %s has %d lines of code, at most %d are allowed: split it", path, f.name, f.lines, maxFunction))
		}
	}
	return out
}

func TestFunctionsOfTestFilesAreSmall(t *testing.T) {
	for _, path := range tracked(t, "_test.go") {
		var s size
		s.addFile(t, filepath.Join(repository, path))
		for _, wrong := range longInTests(path, s.functions) {
			t.Error(wrong)
		}
	}
}

func TestALongFunctionOfATestFileIsReported(t *testing.T) {
	got := longInTests("p/f_test.go", []function{{"TestTable", 200}, {"FuzzText", 61}, {"laws", 61}, {"steps", 60}})
	if want := []string{"p/f_test.go: the function laws has 61 lines of code, at most 60 are allowed: split it"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestEveryViolationOfASizeIsReported(t *testing.T) {
	ofLines := func(lines ...int) []function {
		var out []function
		for _, n := range lines {
			out = append(out, function{"f", n})
		}
		return out
	}
	for name, test := range map[string]struct {
		size         size
		large        map[string]int
		undocumented []string
		want         string
	}{
		"as large as allowed":   {size: size{lines: 1250, functions: ofLines(60, 10, 1), hasDoc: true}},
		"a large package":       {size: size{lines: 1251, hasDoc: true}, want: "p has 1251 lines of code, at most 1250 are allowed: split it"},
		"a known large package": {size: size{lines: 1251, hasDoc: true}, large: map[string]int{"p": 1251}},
		"it has grown":          {size: size{lines: 1252, hasDoc: true}, large: map[string]int{"p": 1251}, want: "p has 1252 lines of code, at most 1251 are allowed: split it"},
		"it is small now":       {size: size{lines: 1250, hasDoc: true}, large: map[string]int{"p": 1251}, want: "tooLarge: remove p, which needs no exception"},
		"it does not exist":     {size: size{hasDoc: true}, large: map[string]int{"q": 1251}, want: "tooLarge: remove q, which needs no exception"},
		"a long function":       {size: size{functions: ofLines(61, 1, 1), hasDoc: true}, want: "p: the function f has 61 lines of code, at most 60 are allowed: split it"},
		"long functions":        {size: size{functions: ofLines(11, 11, 1), hasDoc: true}, want: "the median function has 11 lines of code, at most 10 are allowed"},
		"no doc.go":             {want: "p has no doc.go with a package comment: say there what it holds, what it may not do, where to start reading"},
		"no doc.go, known":      {undocumented: []string{"p"}},
		"a doc.go, not known":   {size: size{hasDoc: true}, undocumented: []string{"p"}, want: "withoutDoc: remove p, which needs no exception"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(violations(map[string]size{"p": test.size}, test.large, test.undocumented), "\n"); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestCodeLinesLeaveOutCommentsAndBlankLines(t *testing.T) {
	source := "// Package p is a test.\npackage p\n\n/* a\n   comment */\nconst text = `one\n\nthree`\n\nfunc f() { // says\n\t// why\n\n\tg()\n}\n"
	got := slices.Sorted(maps.Keys(codeLines([]byte(source))))
	if want := []int{2, 6, 7, 8, 10, 13, 14}; !slices.Equal(got, want) {
		t.Errorf("lines %v, want %v", got, want)
	}
	name := filepath.Join(t.TempDir(), "doc.go")
	if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	var s size
	if s.addFile(t, name); s.lines != 7 || !s.hasDoc || len(s.functions) != 1 || s.functions[0] != (function{"f", 3}) {
		t.Errorf("%+v, want 7 lines, a package comment and the function f of 3 lines", s)
	}
}
