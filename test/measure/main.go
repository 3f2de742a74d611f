package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	t, err := read(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	stays := t.walk("Decide")
	files := slices.Compact(slices.Sorted(slices.Values(stays)))
	for _, row := range []struct {
		what string
		n    int
	}{
		{"lines of the dispatcher", t.lines},
		{"of these, lines with code", t.codeLines},
		{"packages of the dispatcher", len(t.packages)},
		{"facts that decide judges", t.facts()},
		{"actions", t.actions},
		{"names under flex-provisioner.io/", len(t.names)},
		{"stores in memory", t.stores},
		{"files of the walk of one View through decide", len(files)},
		{"returns of that walk to a file that it had left", len(stays) - len(files)},
		{"lines of tests", t.testLines},
	} {
		_, _ = fmt.Fprintf(os.Stdout, "| %s | %d |\n", row.what, row.n)
	}
}

// tree is what was read of the sources.
type tree struct {
	lines, codeLines, testLines, stores int
	packages                            map[string]bool
	// names are the values of the constants under our prefix: labels, annotations, finalizers,
	// gates.
	names map[string]bool
	// structs are the names of the fields of the dispatcher's structs, by "package.Name".
	structs map[string][]string
	// functions are those of decide, by name.
	functions map[string]function
	// actions counts what decide may return: the types with the method traits (isAction, once).
	actions int
}

type function struct {
	name, file string
	body       *ast.BlockStmt
}

func read(root fs.FS) (*tree, error) {
	t := &tree{packages: map[string]bool{}, names: map[string]bool{}, structs: map[string][]string{}, functions: map[string]function{}}
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata"):
			return filepath.SkipDir
		case filepath.Ext(path) == ".go":
			return t.file(root, path)
		}
		return nil
	})
	return t, err
}

func (t *tree) file(root fs.FS, rel string) error {
	text, err := fs.ReadFile(root, rel)
	if err != nil {
		return err
	}
	lines := strings.Count(string(text), "\n")
	inDispatcher := strings.HasPrefix(rel, "dispatcher/")
	switch {
	case strings.HasSuffix(rel, "_test.go"):
		t.testLines += lines
		return nil
	case !inDispatcher && !strings.HasPrefix(rel, "contract/") && !strings.HasPrefix(rel, "cmd/flex-dispatcher/"):
		return nil
	}
	f, err := parser.ParseFile(token.NewFileSet(), rel, text, 0)
	if err != nil {
		return err
	}
	if inDispatcher {
		t.lines += lines
		t.codeLines += linesWithCode(text)
		t.packages[filepath.Dir(rel)] = true
	}
	t.declarations(rel, f)
	return nil
}

// linesWithCode counts the lines that are neither blank nor only a comment.
func linesWithCode(text []byte) int {
	var s scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	s.Init(file, text, nil, 0)
	with := map[int]bool{}
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return len(with)
		}
		if kind == token.SEMICOLON {
			continue // the end of a line
		}
		first := file.Line(pos)
		for line := range strings.Count(literal, "\n") + 1 {
			with[first+line] = true
		}
	}
}

func (t *tree) declarations(rel string, f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			t.constant(n)
			t.stores += locks(n.Type)
		case *ast.TypeSpec:
			if s, isStruct := n.Type.(*ast.StructType); isStruct {
				t.structs[f.Name.Name+"."+n.Name.Name] = fieldsOf(s)
			}
		case *ast.Field:
			t.stores += locks(n.Type)
		case *ast.FuncDecl:
			if filepath.Dir(rel) == "dispatcher/decide" && n.Body != nil {
				t.functions[n.Name.Name] = function{n.Name.Name, rel, n.Body}
				t.actions += count(n.Name.Name == "traits" || n.Name.Name == "isAction")
			}
		}
		return true
	})
}

// constant notes a label, an annotation, a finalizer or a gate: a constant that is contract.Domain
// and more.
func (t *tree) constant(v *ast.ValueSpec) {
	for i, name := range v.Names {
		if i >= len(v.Values) {
			continue
		}
		sum, isSum := v.Values[i].(*ast.BinaryExpr)
		if !isSum {
			continue
		}
		text := ""
		ast.Inspect(sum, func(n ast.Node) bool {
			if id, isIdent := n.(*ast.Ident); isIdent && id.Name == "Domain" {
				text += name.Name
			}
			return true
		})
		if text != "" {
			t.names[text] = true
		}
	}
}

// locks counts a lock, or a map or a cache that has one: each guards something that is kept.
func locks(e ast.Expr) int {
	if star, isPointer := e.(*ast.StarExpr); isPointer {
		e = star.X
	}
	s, isSelector := e.(*ast.SelectorExpr)
	if !isSelector {
		return 0
	}
	return count(slices.Contains([]string{"Mutex", "RWMutex", "Map", "LRUExpireCache", "Expiring"}, s.Sel.Name))
}

func fieldsOf(s *ast.StructType) []string {
	var out []string
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			out = append(out, name.Name)
		}
	}
	return out
}

// judged are the structs of which decide reads facts.
var judged = []string{
	"decide.View", "decide.Volume", "decide.Run", "decide.Target", "runs.Record", "jobs.Record", "jobs.Outcome", "jobs.Returns",
}

// facts counts the fields of what decide judges, of those that it reads.
func (t *tree) facts() int {
	read := map[string]bool{}
	for _, f := range t.functions {
		ast.Inspect(f.body, func(n ast.Node) bool {
			if s, isSelector := n.(*ast.SelectorExpr); isSelector {
				read[s.Sel.Name] = true
			}
			return true
		})
	}
	n := 0
	for _, kind := range judged {
		for _, field := range t.structs[kind] {
			n += count(read[field])
		}
	}
	return n
}

// walk returns the files that one opens who reads from a function on, in order: each function of
// decide that is named leads to its file, and is read once.
func (t *tree) walk(from string) []string {
	var stays []string
	seen := map[string]bool{}
	var enter func(f function)
	enter = func(f function) {
		if seen[f.name] {
			return
		}
		seen[f.name] = true
		if len(stays) == 0 || stays[len(stays)-1] != f.file {
			stays = append(stays, f.file)
		}
		ast.Inspect(f.body, func(n ast.Node) bool {
			if name, isName := n.(*ast.Ident); isName {
				if callee, known := t.functions[name.Name]; known {
					enter(callee)
				}
			}
			return true
		})
	}
	enter(t.functions[from])
	return stays
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
