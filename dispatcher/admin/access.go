package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// need is what the dispatcher must be allowed to do with one resource.
type need struct {
	group, resource string
	verbs           []string
}

// Needs of the whole cluster and of each config namespace; deploy/base/dispatcher-rbac.yaml grants
// them.
var (
	clusterNeeds = []need{
		{"", "persistentvolumeclaims", []string{"get", "list", "watch", "patch"}},
		{"", "persistentvolumeclaims/status", []string{"patch"}},
		{"", "persistentvolumes", []string{"get", "list", "watch", "create", "patch", "delete"}},
		{"storage.k8s.io", "storageclasses", []string{"list", "watch"}},
		{"storage.k8s.io", "volumeattachments", []string{"list", "watch"}},
		{"", "nodes", []string{"get", "list", "watch"}},
		{"gateway.networking.k8s.io", "referencegrants", []string{"list"}},
		{"events.k8s.io", "events", []string{"create", "patch"}},
	}
	// systemNeeds are of the namespace kube-system alone.
	systemNeeds    = []need{{"", "namespaces", []string{"get"}}}
	namespaceNeeds = []need{
		{"", "configmaps", []string{"list", "watch"}},
		{"", "serviceaccounts", []string{"list", "watch"}},
		{"", "pods", []string{"list", "watch", "patch"}},
		{"", "events", []string{"list"}},
		{"apps", "controllerrevisions", []string{"list", "watch", "create", "patch", "delete"}},
		{"batch", "jobs", []string{"list", "watch", "create", "patch", "delete"}},
	}
)

// Needs of the leader election. RBAC cannot restrict the creation of a lease by its name.
var (
	leaseNeeds    = []need{{"coordination.k8s.io", "leases", []string{"create"}}}
	ownLeaseNeeds = []need{{"coordination.k8s.io", "leases", []string{"get", "update"}}}
)

// scope is where something is needed: in a namespace or, if that is empty, in the cluster. It is
// needed for the object of that name or, if that is empty, for all.
type scope struct{ namespace, name string }

// CheckAccess asks the API server whether the dispatcher may do everything that it needs in the
// cluster, in the first config namespace and for the leader's lease. The error names every verb
// that is missing, so that not one watch after another fails later. A lease without a name is not
// needed. The further config namespaces are checked by MissingIn.
func CheckAccess(ctx context.Context, client kubernetes.Interface, namespace string, lease types.NamespacedName) error {
	missing, err := denied(ctx, client, scope{}, clusterNeeds)
	if err != nil {
		return err
	}
	for _, check := range []func() ([]string, error){
		func() ([]string, error) { return denied(ctx, client, scope{name: metav1.NamespaceSystem}, systemNeeds) },
		func() ([]string, error) { return denied(ctx, client, scope{namespace: namespace}, namespaceNeeds) },
		func() ([]string, error) { return leaseDenied(ctx, client, lease) },
	} {
		more, err := check()
		if err != nil {
			return err
		}
		missing = append(missing, more...)
	}
	if len(missing) > 0 {
		return fmt.Errorf("the ServiceAccount lacks permissions: %s; compare its roles with deploy/base/dispatcher-rbac.yaml",
			strings.Join(missing, "; "))
	}
	return nil
}

// MissingIn returns a function that asks the API server which permissions the dispatcher lacks in a
// further config namespace. They concern the classes of that namespace only.
func MissingIn(client kubernetes.Interface) func(ctx context.Context, namespace string) (string, error) {
	return func(ctx context.Context, namespace string) (string, error) {
		missing, err := denied(ctx, client, scope{namespace: namespace}, namespaceNeeds)
		return strings.Join(missing, "; "), err
	}
}

// CannotRead asks the API server what of the dispatcher's reads the user may not do, in the cluster
// and in these config namespaces.
func CannotRead(ctx context.Context, client kubernetes.Interface, namespaces []string) ([]string, error) {
	missing, err := denied(ctx, client, scope{}, readsOf(clusterNeeds))
	for _, ns := range namespaces {
		if err != nil {
			break
		}
		var more []string
		more, err = denied(ctx, client, scope{namespace: ns}, readsOf(namespaceNeeds))
		missing = append(missing, more...)
	}
	return missing, err
}

// MayCreatePVs reports whether a ServiceAccount may create PersistentVolumes.
func MayCreatePVs(ctx context.Context, client kubernetes.Interface, namespace, name string) (bool, error) {
	review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + namespace + ":" + name,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Resource: "persistentvolumes", Verb: "create"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask whether the ServiceAccount %s/%s may create PersistentVolumes: %w", namespace, name, err)
	}
	return review.Status.Allowed, nil
}

// readsOf returns what of some needs is the list and the watch of a kind.
func readsOf(needs []need) (reads []need) {
	for _, n := range needs {
		n.verbs = slices.DeleteFunc(slices.Clone(n.verbs), func(verb string) bool { return verb != "list" && verb != "watch" })
		if len(n.verbs) > 0 {
			reads = append(reads, n)
		}
	}
	return reads
}

func leaseDenied(ctx context.Context, client kubernetes.Interface, lease types.NamespacedName) ([]string, error) {
	if lease.Name == "" {
		return nil, nil
	}
	missing, err := denied(ctx, client, scope{namespace: lease.Namespace}, leaseNeeds)
	if err != nil {
		return nil, err
	}
	own, err := denied(ctx, client, scope{lease.Namespace, lease.Name}, ownLeaseNeeds)
	return append(missing, own...), err
}

func denied(ctx context.Context, client kubernetes.Interface, in scope, needs []need) ([]string, error) {
	var missing []string
	for _, n := range needs {
		name, subresource, _ := strings.Cut(n.resource, "/")
		for _, verb := range n.verbs {
			review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: in.namespace, Name: in.name, Group: n.group, Resource: name, Subresource: subresource, Verb: verb,
				}},
			}, metav1.CreateOptions{})
			if err != nil {
				return nil, fmt.Errorf("ask whether the dispatcher may %s %s: %w", verb, n.resource, err)
			}
			if !review.Status.Allowed {
				missing = append(missing, n.missing(verb, in))
			}
		}
	}
	return missing, nil
}

func (n need) missing(verb string, in scope) string {
	text := verb + " " + n.resource
	if n.group != "" {
		text += "." + n.group
	}
	if in.name != "" {
		text += " " + in.name
	}
	if in.namespace == "" {
		return text + " in the cluster"
	}
	return text + " in the namespace " + in.namespace
}
