package admin_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
)

// lease is the shipped dispatchers'.
var lease = types.NamespacedName{Namespace: "flex-system", Name: "flex-dispatcher"}

// asked returns a client that answers access reviews by a function.
func asked(allow func(authorizationv1.ResourceAttributes) bool) *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		review.Status.Allowed = allow(*review.Spec.ResourceAttributes)
		return true, review, nil
	})
	return client
}

// The dispatcher asks at its start for what it needs, in the cluster and in each config namespace.
func TestShippedRolesGrantWhatIsNeeded(t *testing.T) {
	roles := shippedRoles(t)
	client := asked(func(a authorizationv1.ResourceAttributes) bool {
		role := "flex-dispatcher"
		if a.Namespace != "" {
			role = "flex-dispatcher-configs"
		}
		if a.Resource == "leases" {
			role = "flex-dispatcher-lease"
		}
		return slices.ContainsFunc(roles[role], func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, a.Group) && slices.Contains(r.Resources, resourceAsked(a)) && slices.Contains(r.Verbs, a.Verb) &&
				(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name))
		})
	})
	if err := admin.CheckAccess(t.Context(), client, "flex-provisioner", lease); err != nil {
		t.Error(err)
	}
	if missing, err := admin.MissingIn(client)(t.Context(), "other"); err != nil || missing != "" {
		t.Errorf("in the namespace other: %q, %v", missing, err)
	}
}

// resourceAsked returns the resource of a review as roles write it.
func resourceAsked(a authorizationv1.ResourceAttributes) string {
	if a.Subresource == "" {
		return a.Resource
	}
	return a.Resource + "/" + a.Subresource
}

func TestEveryMissingVerbIsNamedAtOnce(t *testing.T) {
	client := asked(func(a authorizationv1.ResourceAttributes) bool {
		return a.Resource != "jobs" && (a.Resource != "leases" || a.Verb == "create") && a.Subresource != "status" && (a.Resource != "persistentvolumes" || a.Verb != "delete")
	})
	err := admin.CheckAccess(t.Context(), client, "flex-provisioner", lease)
	if err == nil {
		t.Fatal("nothing is missing")
	}
	for _, words := range []string{
		"patch persistentvolumeclaims/status in the cluster", "delete persistentvolumes in the cluster", "create jobs.batch in the namespace flex-provisioner", "patch jobs.batch",
		"get leases.coordination.k8s.io flex-dispatcher in the namespace flex-system", "dispatcher-rbac.yaml",
	} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%q is not in: %v", words, err)
		}
	}
}

// A namespace of some classes that is deleted, and its RoleBinding with it, must not keep the
// dispatcher from serving all others.
func TestAFurtherNamespaceIsCheckedForItself(t *testing.T) {
	client := asked(func(a authorizationv1.ResourceAttributes) bool { return a.Namespace != "other" })
	if err := admin.CheckAccess(t.Context(), client, "flex-provisioner", lease); err != nil {
		t.Errorf("the dispatcher does not start: %v", err)
	}
	missing, err := admin.MissingIn(client)(t.Context(), "other")
	if err != nil || !strings.Contains(missing, "create jobs.batch in the namespace other") || strings.Contains(missing, "leases") {
		t.Errorf("missing in the namespace other: %q, %v", missing, err)
	}
}

func shippedRoles(t *testing.T) map[string][]rbacv1.PolicyRule {
	t.Helper()
	roles := map[string][]rbacv1.PolicyRule{}
	for name, rules := range rolesIn(t, "../../deploy/base/dispatcher-rbac.yaml") {
		_, name, _ = strings.Cut(name, "/")
		roles[name] = rules
	}
	return roles
}

// rolesIn returns the rules of the roles in a file, by kind and name.
func rolesIn(t *testing.T, path string) map[string][]rbacv1.PolicyRule {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string][]rbacv1.PolicyRule{}
	for document := range bytes.SplitSeq(file, []byte("\n---\n")) {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal(document, &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "ClusterRole" || role.Kind == "Role" {
			roles[role.Kind+"/"+role.Name] = role.Rules
		}
	}
	return roles
}
