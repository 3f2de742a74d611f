package test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The namespace of the dispatcher, and the ServiceAccounts there.
const (
	systemNamespace = "flex-system"
	dispatcher      = "flex-dispatcher"
	auditor         = "flex-dispatcher-audit"
)

// manifest is what these tests read of an object under deploy or configmaps.
type manifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Rules    []rbacv1.PolicyRule `json:"rules"`
	Subjects []rbacv1.Subject    `json:"subjects"`
}

// isManifest reports whether a file holds objects. Those of the chart are templates, whose objects
// are those of deploy/base: test/chart.
func isManifest(file string) bool {
	return strings.HasPrefix(file, "configmaps/") || strings.HasPrefix(file, "deploy/") && !strings.HasPrefix(file, "deploy/chart/")
}

func manifests(t *testing.T) []manifest {
	t.Helper()
	var out []manifest
	for _, file := range tracked(t, ".yaml") {
		if !isManifest(file) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(repository, file))
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var m manifest
			if err := yaml.Unmarshal([]byte(document), &m); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			out = append(out, m)
		}
	}
	return out
}

// Whoever creates a pod, a Secret or a token in the dispatcher's namespace is the dispatcher. So
// nothing is there but the dispatcher and, where it is wanted, its audit. The only right that is given
// there is the dispatcher's to its lease, which the audit may read.
func TestNothingButTheDispatcherIsInItsNamespace(t *testing.T) {
	var kinds, ofAudit []string
	for _, m := range manifests(t) {
		if m.Namespace != systemNamespace {
			continue
		}
		if m.Name == auditor {
			ofAudit = append(ofAudit, m.Kind)
		} else {
			kinds = append(kinds, m.Kind)
		}
		for _, rule := range m.Rules {
			if !slices.Equal(rule.Resources, []string{"leases"}) || m.Name == auditor && !slices.Equal(rule.Verbs, []string{"get"}) {
				t.Errorf("%s %s grants %v on %v in %s", m.Kind, m.Name, rule.Verbs, rule.Resources, systemNamespace)
			}
		}
		for _, s := range m.Subjects {
			if of := m.Name == auditor; of && s.Name != auditor || !of && s.Name != dispatcher {
				t.Errorf("%s %s gives %s a right in %s", m.Kind, m.Name, s.Name, systemNamespace)
			}
		}
	}
	// What limits pods, and what Prometheus reads, may be there as well.
	kinds = slices.DeleteFunc(kinds, func(kind string) bool {
		return kind == "NetworkPolicy" || kind == "PodMonitor" || kind == "PrometheusRule"
	})
	slices.Sort(kinds)
	if want := []string{"Deployment", "PodDisruptionBudget", "Role", "RoleBinding", "ServiceAccount"}; !slices.Equal(kinds, want) {
		t.Errorf("%s has %v, want %v", systemNamespace, kinds, want)
	}
	slices.Sort(ofAudit)
	if want := []string{"Deployment", "Role", "RoleBinding", "ServiceAccount"}; !slices.Equal(ofAudit, want) {
		t.Errorf("the audit has %v, want %v", ofAudit, want)
	}
}

// Roles and policies mean the ServiceAccount that the Deployment has.
func TestRolesAndPoliciesNameTheDispatcherInItsNamespace(t *testing.T) {
	bound := 0
	for _, m := range manifests(t) {
		for _, s := range m.Subjects {
			if s.Name != dispatcher {
				continue
			}
			bound++
			if s.Namespace != systemNamespace {
				t.Errorf("%s %s names the dispatcher in %s", m.Kind, m.Name, s.Namespace)
			}
		}
	}
	if bound < 4 {
		t.Errorf("the dispatcher has %d bindings: has their form changed?", bound)
	}
	texts, _ := policies(t)
	named := 0
	for name, text := range texts {
		accounts := strings.Count(text, "serviceaccount:"+systemNamespace+":"+dispatcher+"'")
		named += accounts
		if strings.Count(text, ":"+dispatcher+"'") != accounts {
			t.Errorf("the policy %s names the dispatcher in another namespace", name)
		}
	}
	if named == 0 {
		t.Error("no policy names the dispatcher")
	}
	if !strings.Contains(texts["flex-pv-source"], "'"+systemNamespace+"'") {
		t.Error("the policy on node directories does not judge the dispatcher")
	}
}
