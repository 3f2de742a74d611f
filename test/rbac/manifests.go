package rbac

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Folders are where the shipped manifests are, relative to the root of the repository.
var Folders = []string{"deploy", "configmaps"}

// Grant is one verb on one resource that a shipped role gives an account.
type Grant struct {
	Account   string // namespace/name of a ServiceAccount
	Role      string
	Verb      string
	Resource  string // as ResourceName writes it
	Name      string // of the only object, or empty for all
	Namespace string // where it holds, or empty for the whole cluster
}

// rule identifies a grant wherever it is bound.
type rule struct{ account, role, verb, resource, name string }

func (g Grant) rule() rule { return rule{g.Account, g.Role, g.Verb, g.Resource, g.Name} }

func (r rule) String() string {
	return fmt.Sprintf("%s: %s (role %s)", r.account, r.permission(), r.role)
}

func (r rule) permission() string {
	return strings.TrimSpace(r.verb + " " + r.resource + " " + r.name)
}

// ResourceName writes a resource as errors of the API server do: "jobs.batch",
// "persistentvolumeclaims/status".
func ResourceName(group, resource, subresource string) string {
	if subresource != "" {
		resource += "/" + subresource
	}
	if group != "" {
		resource += "." + group
	}
	return resource
}

// Manifests are the accounts, roles and bindings that are shipped.
type Manifests struct {
	accounts map[string]bool // namespace/name
	roles    map[string]role // by kind and name, of a Role with its namespace
	bindings []binding
}

type role struct {
	name       string
	rules      []rbacv1.PolicyRule
	aggregated bool
}

type binding struct {
	name, namespace string // namespace is empty for a ClusterRoleBinding
	role            string
	subjects        []rbacv1.Subject
}

// document is what is read of any object. Those of other kinds are left out.
type document struct {
	rbacv1.ClusterRoleBinding

	Rules           []rbacv1.PolicyRule     `json:"rules"`
	AggregationRule *rbacv1.AggregationRule `json:"aggregationRule"`
}

// Load reads all manifests below the root of the repository.
func Load(root string) (Manifests, error) {
	var files [][]byte
	for _, folder := range Folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && entry.Name() == "chart" { // templates, which install the roles of these folders
				return fs.SkipDir
			}
			if err != nil || filepath.Ext(path) != ".yaml" {
				return err
			}
			text, err := os.ReadFile(path) //nolint:gosec // the repository's own files
			files = append(files, text)
			return err
		})
		if err != nil {
			return Manifests{}, fmt.Errorf("read the manifests: %w", err)
		}
	}
	return Parse(files...)
}

// Parse reads manifests of any kinds, several in one file.
func Parse(files ...[]byte) (Manifests, error) {
	m := Manifests{accounts: map[string]bool{}, roles: map[string]role{}}
	for _, file := range files {
		for text := range bytes.SplitSeq(file, []byte("\n---\n")) {
			var d document
			if err := yaml.Unmarshal(text, &d); err != nil {
				return Manifests{}, fmt.Errorf("read a manifest: %w", err)
			}
			m.add(&d)
		}
	}
	return m, nil
}

func (m *Manifests) add(d *document) {
	switch d.Kind {
	case "ServiceAccount":
		m.accounts[d.Namespace+"/"+d.Name] = true
	case "Role", "ClusterRole":
		m.roles[roleKey(d.Kind, d.Namespace, d.Name)] = role{d.Name, d.Rules, d.AggregationRule != nil}
	case "RoleBinding", "ClusterRoleBinding":
		m.bindings = append(m.bindings, binding{d.Name, d.Namespace, roleKey(d.RoleRef.Kind, d.Namespace, d.RoleRef.Name), d.Subjects})
	}
}

func roleKey(kind, namespace, name string) string {
	if kind == "ClusterRole" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}

// Account returns the shipped account of a name, whatever its namespace, or "".
func (m Manifests) Account(name string) string {
	for account := range m.accounts {
		if strings.HasSuffix(account, "/"+name) {
			return account
		}
	}
	return ""
}

// Grants returns what the roles give the accounts to which they are bound.
func (m Manifests) Grants() []Grant {
	var out []Grant
	for _, b := range m.bindings {
		r := m.roles[b.role]
		for _, s := range b.subjects {
			for _, g := range r.grants() {
				g.Account, g.Namespace = s.Namespace+"/"+s.Name, b.namespace
				out = append(out, g)
			}
		}
	}
	return out
}

func (r role) grants() []Grant {
	var out []Grant
	for _, p := range r.rules {
		names := p.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range p.APIGroups {
			for _, resource := range p.Resources {
				for _, verb := range p.Verbs {
					for _, name := range names {
						out = append(out, Grant{Role: r.name, Verb: verb, Resource: ResourceName(group, resource, ""), Name: name})
					}
				}
			}
		}
	}
	return out
}

// Faults returns what is wrong with the manifests whatever a run shows: wildcards, rules that no
// audit log can show, roles without a binding, bindings of roles or accounts that are not shipped,
// and what an account is given twice.
func (m Manifests) Faults() []string {
	var out []string
	bound := map[string]bool{}
	for _, b := range m.bindings {
		bound[b.role] = true
		out = append(out, m.faultsOf(b)...)
	}
	for key, r := range m.roles {
		if !bound[key] {
			out = append(out, key+" is bound to no account")
		}
		out = append(out, r.faults(key)...)
	}
	out = append(out, twice(m.Grants())...)
	slices.Sort(out)
	return out
}

func (m Manifests) faultsOf(b binding) []string {
	var out []string
	if _, shipped := m.roles[b.role]; !shipped {
		out = append(out, fmt.Sprintf("the binding %s is of the %s, which is not shipped", b.name, b.role))
	}
	for _, s := range b.subjects {
		if s.Kind != rbacv1.ServiceAccountKind || !m.accounts[s.Namespace+"/"+s.Name] {
			out = append(out, fmt.Sprintf("the binding %s is for the %s %s/%s, which is not shipped", b.name, s.Kind, s.Namespace, s.Name))
		}
	}
	return out
}

func (r role) faults(key string) []string {
	var out []string
	if r.aggregated {
		out = append(out, key+" takes over the rules of other roles")
	}
	for _, p := range r.rules {
		if slices.ContainsFunc(slices.Concat(p.Verbs, p.APIGroups, p.Resources, p.ResourceNames), isWildcard) {
			out = append(out, fmt.Sprintf("%s has a wildcard: verbs %v of %v in %v", key, p.Verbs, p.Resources, p.APIGroups))
		}
		if len(p.NonResourceURLs) > 0 {
			out = append(out, fmt.Sprintf("%s allows %v, which the audit log does not show", key, p.NonResourceURLs))
		}
	}
	return out
}

func isWildcard(word string) bool { return strings.Contains(word, "*") }

// twice returns what an account is given by two rules or bindings.
func twice(grants []Grant) []string {
	var out []string
	for i, g := range grants {
		for _, other := range grants[i+1:] {
			if g.Account == other.Account && g.rule().permission() == other.rule().permission() && overlap(g.Namespace, other.Namespace) {
				out = append(out, fmt.Sprintf("%s may %s twice, by the roles %s and %s", g.Account, g.rule().permission(), g.Role, other.Role))
			}
		}
	}
	return out
}

func overlap(a, b string) bool { return a == "" || b == "" || a == b }
