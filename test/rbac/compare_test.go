package rbac_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/test/rbac"
)

// small are an account with a role in one namespace, and one in the whole cluster.
const small = `
kind: ServiceAccount
metadata: {name: worker, namespace: system}
---
kind: Role
metadata: {name: own, namespace: system}
rules:
  - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
  - {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [leader], verbs: [update]}
---
kind: RoleBinding
metadata: {name: own, namespace: system}
roleRef: {kind: Role, name: own}
subjects: [{kind: ServiceAccount, name: worker, namespace: system}]
---
kind: ClusterRole
metadata: {name: all}
rules:
  - {apiGroups: [""], resources: [persistentvolumeclaims/status], verbs: [patch]}
---
kind: ClusterRoleBinding
metadata: {name: all}
roleRef: {kind: ClusterRole, name: all}
subjects: [{kind: ServiceAccount, name: worker, namespace: system}]
`

func parsed(t *testing.T, text string) rbac.Manifests {
	t.Helper()
	m, err := rbac.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const leases = "leases.coordination.k8s.io"

// asked are requests that use all of the small roles. The audit log has the name of what is
// created.
func asked() []rbac.Request {
	return []rbac.Request{
		{Account: "system/worker", Verb: "create", Resource: leases, Namespace: "system", Name: "leader"},
		{Account: "system/worker", Verb: "update", Resource: leases, Namespace: "system", Name: "leader"},
		{Account: "system/worker", Verb: "patch", Resource: "persistentvolumeclaims/status", Namespace: "users", Name: "data"},
	}
}

func TestRequestsAreComparedWithRules(t *testing.T) {
	own := func(change func(*rbac.Request)) rbac.Request {
		r := asked()[1]
		change(&r)
		return r
	}
	for name, test := range map[string]struct {
		without          int // a request of asked, from 1
		more             []rbac.Request
		missing, unusedB string
	}{
		"all is used":                  {},
		"a rule is unused":             {without: 3, unusedB: "system/worker: patch persistentvolumeclaims/status (role all)"},
		"a name is unused":             {without: 2, unusedB: "system/worker: update " + leases + " leader (role own)"},
		"a rule is missing":            {more: []rbac.Request{own(func(r *rbac.Request) { r.Verb = "delete" })}, missing: "delete " + leases + " in system is allowed by no shipped role"},
		"another object":               {more: []rbac.Request{own(func(r *rbac.Request) { r.Name = "other" })}, missing: "update " + leases},
		"another namespace":            {more: []rbac.Request{own(func(r *rbac.Request) { r.Namespace = "users" })}, missing: "update " + leases + " in users"},
		"another group":                {more: []rbac.Request{own(func(r *rbac.Request) { r.Resource = "leases" })}, missing: "update leases in system"},
		"a stand-in in its namespace":  {more: []rbac.Request{own(func(r *rbac.Request) { r.Namespace, r.StandIn = "e2e", true })}},
		"a refusal":                    {more: []rbac.Request{own(func(r *rbac.Request) { r.Refused = true })}, missing: "was refused: update " + leases},
		"a stand-in is refused":        {more: []rbac.Request{own(func(r *rbac.Request) { r.Refused, r.StandIn = true, true })}, missing: "was refused"},
		"allowed by Kubernetes itself": {more: []rbac.Request{{Account: "system/worker", Verb: "create", Resource: "selfsubjectaccessreviews.authorization.k8s.io", AllowedBy: `RBAC: allowed by ClusterRoleBinding "system:basic-user" of ClusterRole "system:basic-user" to Group "system:authenticated"`}}},
		"allowed by another's role":    {more: []rbac.Request{{Account: "system/worker", Verb: "get", Resource: "secrets", AllowedBy: `RBAC: allowed by ClusterRoleBinding "x"`}}, missing: `get secrets is allowed by no shipped role, but: RBAC: allowed by ClusterRoleBinding "x"`},
		"another account":              {more: []rbac.Request{{Account: "users/tom", Verb: "get", Resource: "secrets", Refused: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			requests := append(asked(), test.more...)
			if test.without > 0 {
				requests = slices.Delete(requests, test.without-1, test.without)
			}
			r := rbac.Compare(parsed(t, small).Grants(), requests)
			if got := strings.Join(r.Missing, "\n"); (got == "") != (test.missing == "") || !strings.Contains(got, test.missing) {
				t.Errorf("missing: %q, want %q", got, test.missing)
			}
			if got := strings.Join(r.Unused, "\n"); got != test.unusedB {
				t.Errorf("unused: %q, want %q", got, test.unusedB)
			}
		})
	}
}

// A binding that no request needed is unused, although the same role is used in another namespace,
// or by a stand-in.
func TestBindingThatNoRequestNeededIsUnused(t *testing.T) {
	const second = `---
kind: RoleBinding
metadata: {name: all, namespace: users}
roleRef: {kind: ClusterRole, name: some}
subjects: [{kind: ServiceAccount, name: worker, namespace: system}]
---
kind: RoleBinding
metadata: {name: all, namespace: others}
roleRef: {kind: ClusterRole, name: some}
subjects: [{kind: ServiceAccount, name: worker, namespace: system}]
---
kind: ClusterRole
metadata: {name: some}
rules: [{apiGroups: [batch], resources: [jobs], verbs: [create, delete]}]
`
	requests := append(asked(),
		rbac.Request{Account: "system/worker", Verb: "create", Resource: "jobs.batch", Namespace: "users"},
		rbac.Request{Account: "system/worker", Verb: "delete", Resource: "jobs.batch", Namespace: "e2e", StandIn: true})
	r := rbac.Compare(parsed(t, small+second).Grants(), requests)
	if got := fmt.Sprint(r.Missing, r.Unused); got != "[] [system/worker: the role some in the namespace others]" {
		t.Errorf("missing and unused: %s", got)
	}
	for _, want := range []string{"account        role  permission                                used  why", "\nsystem/worker  some  delete jobs.batch                         1 "} {
		if !strings.Contains(r.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, r)
		}
	}
}

func TestFaultsOfRolesAreFound(t *testing.T) {
	for _, test := range []struct{ old, changed, fault string }{
		{"", "", ""},
		{"verbs: [patch]", `verbs: ["*"]`, "ClusterRole all has a wildcard"},
		{`apiGroups: [""]`, `apiGroups: ["*"]`, "ClusterRole all has a wildcard"},
		{"persistentvolumeclaims/status", `"*/status"`, "ClusterRole all has a wildcard"},
		{"resourceNames: [leader]", `resourceNames: ["*"]`, "Role system/own has a wildcard"},
		{`{apiGroups: [""], resources: [persistentvolumeclaims/status], verbs: [patch]}`, `{nonResourceURLs: [/metrics], verbs: [get]}`, "which the audit log does not show"},
		{"metadata: {name: all}\nrules:", "metadata: {name: all}\naggregationRule: {}\nrules:", "takes over the rules of other roles"},
		{"roleRef: {kind: ClusterRole, name: all}", "roleRef: {kind: ClusterRole, name: cluster-admin}", "the binding all is of the ClusterRole cluster-admin, which is not shipped"},
		{"roleRef: {kind: ClusterRole, name: all}", "roleRef: {kind: ClusterRole, name: cluster-admin}", "ClusterRole all is bound to no account"},
		{"kind: ServiceAccount, name: worker, namespace: system}]\n---", "kind: Group, name: everyone}]\n---", "the binding own is for the Group /everyone"},
		{"persistentvolumeclaims/status], verbs: [patch]", "configmaps], verbs: [get, get]", "system/worker may get configmaps twice"},
	} {
		faults := parsed(t, strings.Replace(small, test.old, test.changed, 1)).Faults()
		if test.fault == "" && len(faults) > 0 || !strings.Contains(strings.Join(faults, "\n"), test.fault) {
			t.Errorf("with %q the faults are %q, want %q", test.changed, faults, test.fault)
		}
	}
}

// Only the stand-in of an account needs a role that the account has in one namespace: it is used.
func TestStandInShowsThatARoleIsNeeded(t *testing.T) {
	requests := asked()
	requests[0].StandIn, requests[1].StandIn = true, true
	if r := rbac.Compare(parsed(t, small).Grants(), requests); len(r.Unused)+len(r.Missing) > 0 {
		t.Errorf("unused %q, missing %q", r.Unused, r.Missing)
	}
}

// The dispatchers of the tests have the shipped roles in namespaces of the tests. An account of
// another name there is no concern of the comparison.
func TestAccountOfATestStandsInForTheShippedOne(t *testing.T) {
	m := parsed(t, small)
	for user, want := range map[string]string{
		"system:serviceaccount:system:worker":      "system/worker false a.e2e.example.com true",
		"system:serviceaccount:e2e-x-abcde:worker": "system/worker true a.e2e.example.com true",
		"system:serviceaccount:e2e-x-abcde:poor":   "e2e-x-abcde/poor false a.e2e.example.com true",
		"kubernetes-admin":                         "",
	} {
		r, ok := m.RequestOf(user, rbac.Request{Name: "a.e2e.example.com"})
		if got := fmt.Sprint(r.Account, " ", r.StandIn, " ", r.Name, " ", ok); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s, want %s", user, got, want)
		}
	}
}
