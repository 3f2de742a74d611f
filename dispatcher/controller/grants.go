package controller

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

// referenceGrants is the API by which one namespace consents to references from another. Kubernetes
// itself uses it for data sources across namespaces.
var referenceGrants = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1beta1", Resource: "referencegrants"}

// ReferenceGrants reads consent from ReferenceGrants. Where that API is not served nobody consents.
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

// Allows implements Grants.
func (g ReferenceGrants) Allows(ctx context.Context, source types.NamespacedName, to string) (bool, error) {
	list, err := g.Client.Resource(referenceGrants).Namespace(source.Namespace).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for ReferenceGrants in %s: %w", source.Namespace, err)
	}
	return slices.ContainsFunc(list.Items, func(u unstructured.Unstructured) bool {
		var one grant
		return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &one) == nil && one.allows(source.Name, to)
	}), nil
}

func (g grant) allows(name, to string) bool {
	return slices.ContainsFunc(g.Spec.From, func(f grantFrom) bool {
		return f.Group == "" && f.Kind == kindClaim && f.Namespace == to
	}) && slices.ContainsFunc(g.Spec.To, func(t grantTo) bool {
		return t.Group == "" && t.Kind == kindClaim && (t.Name == nil || *t.Name == "" || *t.Name == name)
	})
}
