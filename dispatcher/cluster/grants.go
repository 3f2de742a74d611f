package cluster

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Grants answers whether the owner of a namespace allows claims of another namespace to clone a claim there.
type Grants interface {
	// Allows reports whether a claim in the namespace to may clone the claim source. Its error is transient.
	Allows(ctx context.Context, source types.NamespacedName, to string) (bool, error)
}

// The API by which one namespace consents to references from another. Kubernetes itself uses it for data sources across
// namespaces. A cluster serves one or more of its versions, and each has all grants.
const grantGroup, grantResource = "gateway.networking.k8s.io", "referencegrants"

var grantVersions = []string{"v1", "v1beta1"}

// ReferenceGrants reads consent from ReferenceGrants. If that API is not served, no namespace consents.
type ReferenceGrants struct{ Client dynamic.Interface }

// grant is the part of a ReferenceGrant that matters here.
type grant struct {
	Spec struct {
		From []grantFrom `json:"from"`
		To   []grantTo   `json:"to"`
	} `json:"spec"`
}

type grantFrom struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
}

type grantTo struct {
	Group string  `json:"group"`
	Kind  string  `json:"kind"`
	Name  *string `json:"name"` // nil: all of them
}

// Allows implements Grants. It asks the API server each time, so that an API that is installed later is noticed.
func (g ReferenceGrants) Allows(ctx context.Context, source types.NamespacedName, to string) (bool, error) {
	list, err := g.list(ctx, source.Namespace)
	if err != nil {
		return false, fmt.Errorf("look for ReferenceGrants in %s: %w", source.Namespace, err)
	}
	return slices.ContainsFunc(list, func(u unstructured.Unstructured) bool {
		var one grant
		return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &one) == nil && one.allows(source.Name, to)
	}), nil
}

// list returns a namespace's grants by the first version that is served, and none if none is.
func (g ReferenceGrants) list(ctx context.Context, namespace string) ([]unstructured.Unstructured, error) {
	for _, version := range grantVersions {
		api := schema.GroupVersionResource{Group: grantGroup, Version: version, Resource: grantResource}
		list, err := g.Client.Resource(api).Namespace(namespace).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		case err != nil:
			return nil, err
		default:
			return list.Items, nil
		}
	}
	return nil, nil
}

func (g grant) allows(name, to string) bool {
	return slices.ContainsFunc(g.Spec.From, func(f grantFrom) bool {
		return f.Group == "" && f.Kind == kindClaim && f.Namespace == to
	}) && slices.ContainsFunc(g.Spec.To, func(t grantTo) bool {
		return t.Group == "" && t.Kind == kindClaim && (t.Name == nil || *t.Name == "" || *t.Name == name)
	})
}
