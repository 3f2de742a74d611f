package cut

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// allOfThem stands for a use of a claim's annotations that names none of them.
const allOfThem = "all of them"

// readAll are the files that may read all annotations of a claim: of the users' own, as far as they
// are kept, of those that Report writes, and of what the API server has answered.
var readAll = []string{"jobs/text.go", "runs/report.go", "act/claim.go"}

// An annotation that is not kept is empty on each claim that is observed, from the caches and live.
func TestEveryAnnotationThatIsReadOfAClaimIsKept(t *testing.T) {
	var kept []string
	ast.Inspect(parsed(t, "cut.go"), func(n ast.Node) bool {
		if s, is := n.(*ast.SelectorExpr); is {
			kept = append(kept, s.Sel.Name)
		}
		return true
	})
	reads := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		path = filepath.ToSlash(path)
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../cut/") {
			return err
		}
		for _, decl := range parsed(t, path).Decls {
			for _, key := range readOfClaims(decl) {
				reads++
				if !slices.Contains(kept, key) && (key != allOfThem || !slices.Contains(readAll, strings.TrimPrefix(path, "../"))) {
					t.Errorf("%s reads an annotation of a claim, %s, that cut.go does not name", path, key)
				}
			}
		}
		return nil
	})
	if err != nil || reads < 10 {
		t.Errorf("%d reads of a claim's annotations were found: %v", reads, err)
	}
}

func parsed(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// readOfClaims returns the names of the constants by which a declaration reads annotations of
// claims.
func readOfClaims(decl ast.Decl) []string {
	claims, keys := []string{"claim", "Claim"}, []string(nil)
	ast.Inspect(decl, func(n ast.Node) bool {
		if field, is := n.(*ast.Field); is && isClaim(field.Type) {
			for _, name := range field.Names {
				claims = append(claims, name.Name)
			}
		}
		return true
	})
	ast.Inspect(decl, func(n ast.Node) bool {
		if index, is := n.(*ast.IndexExpr); is && isAnnotations(index.X, claims) {
			keys = append(keys, nameOf(index.Index))
			return false
		}
		if expr, is := n.(ast.Expr); is && isAnnotations(expr, claims) {
			keys = append(keys, allOfThem)
		}
		return true
	})
	return keys
}

func isClaim(expr ast.Expr) bool {
	star, is := expr.(*ast.StarExpr)
	return is && nameOf(star.X) == "PersistentVolumeClaim"
}

// isAnnotations reports whether an expression is the annotations of a variable or field with one of
// these names.
func isAnnotations(expr ast.Expr, of []string) bool {
	if call, is := expr.(*ast.CallExpr); is {
		expr = call.Fun
	}
	s, is := expr.(*ast.SelectorExpr)
	return is && (s.Sel.Name == "Annotations" || s.Sel.Name == "GetAnnotations") && slices.Contains(of, nameOf(s.X))
}

// nameOf returns the last name of an expression.
func nameOf(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	default:
		return ""
	}
}

// The report is compared with what the claim says.
func TestWhatIsReportedOnAClaimIsKept(t *testing.T) {
	pv := fixture.PV(t)
	pv.Annotations[contract.AnnCloneOf] = "app/source"
	report := runs.Report(1, runs.Outcome{}, true, pv)
	kept := Claim(fixture.Claim(bound, func(c *corev1.PersistentVolumeClaim) { c.Annotations = report }))
	for key := range report {
		if _, found := kept.Annotations[key]; !found {
			t.Errorf("%s is not kept", key)
		}
	}
}
