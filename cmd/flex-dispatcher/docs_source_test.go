package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// source is the dispatcher's source code. Constants and events that no function lists are found in
// it, so that a new one cannot be left out of the pages.
type source struct {
	t         *testing.T
	files     map[string]*ast.File // by path below the root
	constants map[string]constant  // by "package.Name"
}

type constant struct {
	pkg, name, kind, value string
}

func readSource(t *testing.T) source {
	t.Helper()
	s := source{t: t, files: map[string]*ast.File{}, constants: map[string]constant{}}
	for _, dir := range []string{"audit", "contract", "dispatcher"} {
		s.read(dir)
	}
	for before := -1; before != len(s.constants); { // one may be made of others, declared later
		before = len(s.constants)
		s.each(func(path string, n ast.Node) {
			if spec, ok := n.(*ast.ValueSpec); ok {
				s.declared(path, spec)
			}
		})
	}
	return s
}

// read parses every file of a directory and of those below it.
func (s source) read(dir string) {
	s.t.Helper()
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		s.files[strings.TrimPrefix(filepath.ToSlash(path), root+"/")] = file
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s source) each(visit func(path string, n ast.Node)) {
	for path, file := range s.files {
		ast.Inspect(file, func(n ast.Node) bool {
			visit(path, n)
			return true
		})
	}
}

func packageOf(path string) string { return filepath.Base(filepath.Dir(path)) }

func (s source) declared(path string, spec *ast.ValueSpec) {
	kind := ""
	if typ, ok := spec.Type.(*ast.Ident); ok {
		kind = typ.Name
	}
	for i, name := range spec.Names {
		if i >= len(spec.Values) {
			return
		}
		pkg := packageOf(path)
		if value, known := s.text(pkg, spec.Values[i]); known {
			s.constants[pkg+"."+name.Name] = constant{pkg, name.Name, kind, value}
		}
	}
}

// text is the value of a string that is written out, or made of constants.
func (s source) text(pkg string, e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		value, err := strconv.Unquote(e.Value)
		return value, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		c, known := s.constants[pkg+"."+e.Name]
		return c.value, known
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			c, known := s.constants[x.Name+"."+e.Sel.Name]
			return c.value, known
		}
	case *ast.BinaryExpr:
		a, knownA := s.text(pkg, e.X)
		b, knownB := s.text(pkg, e.Y)
		return a + b, knownA && knownB && e.Op == token.ADD
	}
	return "", false
}

// named returns the values of the constants whose name begins with prefix, with where each is
// declared.
func (s source) named(prefix string) map[string]string {
	out := map[string]string{}
	for key, c := range s.constants {
		if strings.HasPrefix(c.name, prefix) {
			out[c.value] = key
		}
	}
	return out
}

// reasons returns the constants of the package reason. An event whose reason is written out
// elsewhere would be in no table.
func (s source) reasons() map[string]string {
	s.each(func(path string, n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if at, takes := reasonAt[nameOf(n.Fun)]; takes && len(n.Args) > at {
				s.mustBeNamed(path, n.Args[at])
			}
		case *ast.KeyValueExpr:
			if nameOf(n.Key) == "Reason" {
				s.mustBeNamed(path, n.Value)
			}
		}
	})
	all := s.in("reason")
	maps.DeleteFunc(all, func(value, _ string) bool { return strings.Contains(value, " ") }) // a note
	return all
}

// reasonAt is which argument of these functions is a reason.
var reasonAt = map[string]int{"problem": 0, "emit": 3}

func (s source) mustBeNamed(path string, e ast.Expr) {
	if _, literal := e.(*ast.BasicLit); literal {
		s.t.Errorf("%s writes the reason of an event out: add it to dispatcher/reason", path)
	}
}

// in returns the values of a package's constants, by where they are declared.
func (s source) in(pkg string) map[string]string {
	out := map[string]string{}
	for key, c := range s.constants {
		if c.pkg == pkg {
			out[c.value] = key
		}
	}
	return out
}

// nameOf returns the last part of a qualified name.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	default:
		return ""
	}
}

// fields are the names in JSON of every struct that has some, by "package.Type"; in the controller
// they are those of other people's objects.
func (s source) fields() map[string][]string {
	out := map[string][]string{}
	s.each(func(path string, n ast.Node) {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || packageOf(path) == "cluster" {
			return
		}
		body, ok := spec.Type.(*ast.StructType)
		if !ok {
			return
		}
		for _, field := range body.Fields.List {
			if name := inJSON(field); name != "" {
				key := packageOf(path) + "." + spec.Name.Name
				out[key] = append(out[key], name)
			}
		}
	})
	return out
}

func inJSON(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return name
}
