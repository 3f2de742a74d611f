package rbac

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Request is one request of an account, as the audit log has it.
type Request struct {
	Account   string // namespace/name of a ServiceAccount
	Verb      string
	Resource  string // as ResourceName writes it
	Namespace string // of the object, or empty
	Name      string // of the object, or empty
	Refused   bool   // by the authorizer: no rule allows it
	AllowedBy string // what the authorizer says of a request that it allows
	// StandIn says that an account of a test asked, which has the same roles in namespaces of its
	// own.
	StandIn bool
}

// What stands in for a shipped account in the end-to-end tests is an account of its name in a
// namespace of a test, which has the shipped roles there.
const standInNamespaces = "e2e-"

// RequestOf completes a request by the name of its user, and reports whether that is a
// ServiceAccount. A stand-in counts as the shipped account.
func (m Manifests) RequestOf(user string, r Request) (Request, bool) {
	account, is := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, name, _ := strings.Cut(account, ":")
	r.Account = namespace + "/" + name
	if shipped := m.Account(name); is && shipped != "" && strings.HasPrefix(namespace, standInNamespaces) {
		r.Account, r.StandIn = shipped, true
	}
	return r, is
}

// Row is a permission of an account, and how many requests needed it.
type Row struct {
	Account, Role, Permission string
	Used                      int
	Reason                    string // why a run need not use it, or empty
}

// Result is what the requests of a run say about the roles.
type Result struct {
	Rows    []Row
	Missing []string // what an account was refused, or was allowed by a role that is not shipped
	Unused  []string // what no request needed, without a reason
}

// Compare judges grants by the requests of a run. Accounts without a grant are left out.
func Compare(grants []Grant, requests []Request) Result {
	c := comparison{
		used: map[rule]int{}, bound: map[Grant]int{}, missing: map[string]int{}, byAccount: map[string][]Grant{},
	}
	for _, g := range grants {
		c.byAccount[g.Account] = append(c.byAccount[g.Account], g)
	}
	for _, r := range requests {
		c.count(r)
	}
	return Result{Rows: c.rows(grants), Missing: c.allMissing(), Unused: c.unused(grants)}
}

type comparison struct {
	byAccount map[string][]Grant
	used      map[rule]int
	bound     map[Grant]int // the same by namespace; of stand-ins nothing is known there
	missing   map[string]int
}

func (c *comparison) count(r Request) {
	if len(c.byAccount[r.Account]) == 0 {
		return
	}
	if r.Refused {
		if r.provokedBy() == "" {
			c.missing[r.Account+" was refused: "+r.what()]++
		}
		return
	}
	covered := map[rule]bool{} // counted once, also for a stand-in of an account that is bound in several namespaces
	for _, g := range c.byAccount[r.Account] {
		if !g.covers(r) {
			continue
		}
		covered[g.rule()] = true
		if !r.StandIn {
			c.bound[g]++
		}
	}
	for rule := range covered {
		c.used[rule]++
	}
	if len(covered) == 0 && !isOfKubernetes(r.AllowedBy) {
		c.missing[fmt.Sprintf("%s: %s is allowed by no shipped role, but: %s", r.Account, r.what(), r.AllowedBy)]++
	}
}

// covers reports whether the grant allows the request.
func (g Grant) covers(r Request) bool {
	return g.Verb == r.Verb && g.Resource == r.Resource &&
		(g.Name == "" || g.Name == r.authorizedName()) &&
		(g.Namespace == "" || r.StandIn || g.Namespace == r.Namespace)
}

// authorizedName is the name that the authorizer knows. A creation has none in its URL, though the
// audit log takes it from the object.
func (r Request) authorizedName() string {
	if r.Verb == "create" && !strings.Contains(r.Resource, "/") {
		return ""
	}
	return r.Name
}

func (r Request) what() string {
	text := r.Verb + " " + r.Resource
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// isOfKubernetes reports whether the authorizer allowed a request by a binding that Kubernetes
// makes for every account.
func isOfKubernetes(allowedBy string) bool {
	return strings.HasPrefix(allowedBy, `RBAC: allowed by ClusterRoleBinding "system:`)
}

func (c *comparison) rows(grants []Grant) []Row {
	rules := map[rule]bool{}
	for _, g := range grants {
		rules[g.rule()] = true
	}
	var out []Row
	for r := range rules {
		out = append(out, Row{Account: r.account, Role: r.role, Permission: r.permission(), Used: c.used[r], Reason: r.reason()})
	}
	slices.SortFunc(out, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Permission, b.Permission))
	})
	return out
}

func (c *comparison) allMissing() []string {
	var out []string
	for what, n := range c.missing {
		out = append(out, fmt.Sprintf("%s (%d times)", what, n))
	}
	slices.Sort(out)
	return out
}

// unused returns the rules without a request and without a reason. Of a role that an account has in
// several namespaces it returns the namespaces without a request, too: a stand-in shows that the
// role is needed, and not where.
func (c *comparison) unused(grants []Grant) []string {
	out, places := map[string]bool{}, map[string]bool{} // places are bindings, true if they are used
	for _, g := range grants {
		r := g.rule()
		if c.used[r] == 0 && r.reason() == "" {
			out[r.String()] = true
		}
		if c.isBoundOnce(g) {
			continue
		}
		where := fmt.Sprintf("%s: the role %s in the namespace %s", g.Account, g.Role, g.Namespace)
		places[where] = places[where] || c.bound[g] > 0
	}
	for where, used := range places {
		if !used {
			out[where] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// isBoundOnce reports whether the account has the rule in one namespace, or in the cluster.
func (c *comparison) isBoundOnce(g Grant) bool {
	return !slices.ContainsFunc(c.byAccount[g.Account], func(o Grant) bool { return o.rule() == g.rule() && o.Namespace != g.Namespace })
}
