package rbac_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/test/rbac"
)

const root = "../.."

func shipped(t *testing.T) rbac.Manifests {
	t.Helper()
	m, err := rbac.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Grants()) < 50 {
		t.Fatalf("%d permissions were found: has the form of the manifests changed?", len(m.Grants()))
	}
	return m
}

// No shipped role has a wildcard, none is without a binding, and no account is given anything
// twice.
func TestShippedRolesHaveNoFaults(t *testing.T) {
	for _, fault := range shipped(t).Faults() {
		t.Error(fault)
	}
}

// requestsFor returns a request for each grant, as an account with exactly these would send them.
func requestsFor(grants []rbac.Grant) []rbac.Request {
	var out []rbac.Request
	for _, g := range grants {
		out = append(out, rbac.Request{Account: g.Account, Verb: g.Verb, Resource: g.Resource, Namespace: g.Namespace, Name: g.Name})
	}
	return out
}

// A run that uses every permission finds none missing and none unused. Without any one of the rules
// it finds that something is missing.
func TestEachShippedPermissionThatIsTakenAwayIsMissed(t *testing.T) {
	grants := shipped(t).Grants()
	requests := requestsFor(grants)
	if r := rbac.Compare(grants, requests); len(r.Missing)+len(r.Unused) > 0 {
		t.Errorf("missing %q, unused %q, although every permission is used", r.Missing, r.Unused)
	}
	for i, g := range grants {
		if r := rbac.Compare(slices.Delete(slices.Clone(grants), i, i+1), requests); len(r.Missing) != 1 && len(byAccount(grants, g.Account)) > 1 {
			t.Errorf("without %+v these are missing: %q", g, r.Missing)
		}
	}
}

func byAccount(grants []rbac.Grant, account string) []rbac.Grant {
	return slices.DeleteFunc(slices.Clone(grants), func(g rbac.Grant) bool { return g.Account != account })
}

// Without its requests each permission is unused, but for those that are listed with a reason.
func TestEachShippedPermissionThatIsNotUsedIsFound(t *testing.T) {
	grants := shipped(t).Grants()
	for _, g := range grants {
		same := func(o rbac.Request) bool {
			return o.Account == g.Account && o.Verb == g.Verb && o.Resource == g.Resource
		}
		r := rbac.Compare(grants, slices.DeleteFunc(requestsFor(grants), same))
		excused := slices.ContainsFunc(rbac.Unused, func(e rbac.Exception) bool { return isOf(e, g) })
		if found := len(r.Unused) > 0; found == excused {
			t.Errorf("unused without %+v: %q; it has a reason: %v", g, r.Unused, excused)
		}
	}
}

func isOf(e rbac.Exception, g rbac.Grant) bool {
	named := e.Account == rbac.Any || strings.HasSuffix(g.Account, "/"+e.Account)
	return named && e.Verb == g.Verb && e.Resource == g.Resource
}

// What is excused is shipped, and has a reason. The tests that reasons and provoked refusals name
// exist.
func TestExceptionsNameWhatIsShipped(t *testing.T) {
	grants := shipped(t).Grants()
	for _, e := range rbac.Unused {
		if e.Reason == "" || !slices.ContainsFunc(grants, func(g rbac.Grant) bool { return isOf(e, g) }) {
			t.Errorf("the exception %+v has no reason, or is of no shipped permission: remove it", e)
		}
		for _, name := range regexp.MustCompile(`Test\w+`).FindAllString(e.Reason, -1) {
			testExists(t, name)
		}
	}
	for _, p := range rbac.Provoked {
		testExists(t, p.Test)
		if p.Reason == "" || p.Namespace == "" || shipped(t).Account(p.Account) == "" {
			t.Errorf("the provoked refusal %+v lacks a reason, a namespace or a shipped account", p)
		}
	}
}

func testExists(t *testing.T, name string) {
	t.Helper()
	for _, folder := range []string{"test/e2e", "dispatcher/controller", "dispatcher/decide", "audit/run"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "func "+name+"(t ") {
				return
			}
		}
	}
	t.Errorf("there is no test %s", name)
}
