//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// referenceGrantCRD serves as much of the ReferenceGrant as the test needs. The API server demands
// the annotation for groups of Kubernetes' own community.
const referenceGrantCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: referencegrants.gateway.networking.k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, a test's"}
spec:
  group: gateway.networking.k8s.io
  scope: Namespaced
  names: {kind: ReferenceGrant, listKind: ReferenceGrantList, plural: referencegrants, singular: referencegrant}
  versions:
    - name: v1beta1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	grants      = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1beta1", Resource: "referencegrants"}
)

// A claim of another namespace is cloned when that namespace consents, and not before: with the API
// not served, with it served and no grant, with grants for others. The dispatchers are not
// restarted when the API appears. Both ways to ask are tried.
func TestCloneFromAnotherNamespaceNeedsReferenceGrant(t *testing.T) {
	t.Parallel()
	w, others := newWorld(t, "guest"), newWorld(t, "host")
	class := w.cloning()
	source := others.claim(class, "source")
	others.bound(source)
	w.noGrantsServed()
	asked := map[string]*corev1.PersistentVolumeClaim{
		"annotation": w.claim(class, "by-annotation", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{"k8s.io/CloneRequest": others.ns + "/source"}
		}),
		"dataSourceRef": w.claim(class, "by-reference", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "source", Namespace: &others.ns}
		}),
	}
	for how, claim := range asked {
		if how == "dataSourceRef" && (claim.Spec.DataSourceRef == nil || claim.Spec.DataSourceRef.Namespace == nil) {
			t.Fatal("the API server drops dataSourceRef.namespace: hack/e2e.sh starts it with the gate CrossNamespaceVolumeDataSource")
		}
		w.event(claim, "SourceRefused", "ReferenceGrant", others.ns+"/source")
	}

	w.serveGrants()
	w.grant(others.ns, "to-another", w.ns+"-not", "source")
	w.grant(others.ns, "of-another", w.ns, "not-source")
	late := w.claim(class, "late", func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{"k8s.io/CloneRequest": others.ns + "/source"}
	})
	w.event(late, "SourceRefused", "ReferenceGrant", others.ns+"/source")
	for _, claim := range w.claims {
		equal(t, "Jobs of "+claim.Name+" without consent", len(w.jobs(claim, "")), 0)
	}

	w.grant(others.ns, "consent", w.ns, "source")
	for _, claim := range w.claims { // grants are looked for once a minute
		w.eventually(2*toBind, "the copy "+claim.Name+" to be bound", func(ctx context.Context) error { return succeeded(ctx, claim) })
		equal(t, "the volume that Cinder copied for "+claim.Name, w.onlyVolume(claim).SourceID, others.onlyVolume(source).ID)
		equal(t, "k8s.io/CloneOf of "+claim.Name, w.look(claim).Annotations["k8s.io/CloneOf"], others.ns+"/source")
	}
}

func (w *world) dynamic() dynamic.Interface {
	w.t.Helper()
	client, err := dynamic.NewForConfig(kubeConfig)
	w.must(err, "make a dynamic client")
	return client
}

// noGrantsServed: the dispatchers were started without the API, as the test wants to show.
func (w *world) noGrantsServed() {
	w.t.Helper()
	if _, err := w.dynamic().Resource(grants).Namespace(w.ns).List(w.ctx(), all); !apierrors.IsNotFound(err) {
		w.t.Fatalf("somebody else serves ReferenceGrants: %v", err)
	}
}

func (w *world) serveGrants() {
	w.t.Helper()
	var crd unstructured.Unstructured
	w.must(yaml.Unmarshal([]byte(referenceGrantCRD), &crd.Object), "read the definition")
	_, err := w.dynamic().Resource(definitions).Create(w.ctx(), &crd, metav1.CreateOptions{})
	w.must(err, "create the definition")
	w.remove(func() {
		err := w.dynamic().Resource(definitions).Delete(w.ctx(), crd.GetName(), metav1.DeleteOptions{})
		w.gone(err, "the definition of ReferenceGrants")
	})
	w.eventually(toBind, "the API server to serve ReferenceGrants", func(ctx context.Context) error {
		_, err := w.dynamic().Resource(grants).Namespace(w.ns).List(ctx, all)
		return err
	})
}

// grant lets claims of one namespace be cloned from a claim of another.
func (w *world) grant(namespace, name, to, source string) {
	w.t.Helper()
	text := fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: %s}
spec:
  from: [{group: "", kind: PersistentVolumeClaim, namespace: %s}]
  to: [{group: "", kind: PersistentVolumeClaim, name: %s}]
`, name, to, source)
	var grant unstructured.Unstructured
	w.must(yaml.Unmarshal([]byte(text), &grant.Object), "read the grant")
	w.eventually(toBind, "the API server to take the grant "+name, func(ctx context.Context) error {
		_, err := w.dynamic().Resource(grants).Namespace(namespace).Create(ctx, &grant, metav1.CreateOptions{})
		return err
	})
}
