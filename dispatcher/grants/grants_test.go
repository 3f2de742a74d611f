package grants_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/grants"
)

func grantsAPI(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: version, Resource: "referencegrants"}
}

func dynamicClient(objects ...runtime.Object) *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		grantsAPI("v1"): "ReferenceGrantList", grantsAPI("v1beta1"): "ReferenceGrantList",
	}, objects...)
}

// granting returns grants of an API server that serves some versions of the API, with a grant of
// this spec in the namespace host. It answers for another version as an API server that does not
// know it.
func granting(t *testing.T, spec string, served ...string) *grants.Grants {
	t.Helper()
	var objects []runtime.Object
	for _, version := range served {
		var grant unstructured.Unstructured
		text := fmt.Sprintf("{apiVersion: gateway.networking.k8s.io/%s, kind: ReferenceGrant, metadata: {name: g, namespace: host}, spec: %s}", version, spec)
		if err := yaml.Unmarshal([]byte(text), &grant.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, &grant)
	}
	client := dynamicClient(objects...)
	client.PrependReactor("list", "referencegrants", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if !slices.Contains(served, a.GetResource().Version) {
			return true, nil, apierrors.NewNotFound(a.GetResource().GroupResource(), "")
		}
		return false, nil, nil
	})
	return grants.New(client, clock.RealClock{})
}

// Consent is what a ReferenceGrant of the source's namespace says about this very clone, by any
// version of that API that the cluster serves.
func TestConsentIsReadFromReferenceGrants(t *testing.T) {
	const claims = `from: [{group: "", kind: PersistentVolumeClaim, namespace: guest}]`
	tests := map[string]struct {
		spec   string
		served []string
		want   bool
	}{
		"one claim":                 {`{` + claims + `, to: [{group: "", kind: PersistentVolumeClaim, name: source}]}`, []string{"v1beta1"}, true},
		"every claim":               {`{` + claims + `, to: [{group: "", kind: PersistentVolumeClaim}]}`, []string{"v1beta1"}, true},
		"by the stable version":     {`{` + claims + `, to: [{group: "", kind: PersistentVolumeClaim}]}`, []string{"v1"}, true},
		"by both":                   {`{` + claims + `, to: [{group: "", kind: PersistentVolumeClaim}]}`, []string{"v1", "v1beta1"}, true},
		"another claim":             {`{` + claims + `, to: [{group: "", kind: PersistentVolumeClaim, name: other}]}`, []string{"v1"}, false},
		"another kind":              {`{` + claims + `, to: [{group: "", kind: Secret}]}`, []string{"v1"}, false},
		"claims of another guest":   {`{from: [{group: "", kind: PersistentVolumeClaim, namespace: else}], to: [{group: "", kind: PersistentVolumeClaim}]}`, []string{"v1"}, false},
		"another kind of the guest": {`{from: [{group: example.com, kind: PersistentVolumeClaim, namespace: guest}], to: [{group: "", kind: PersistentVolumeClaim}]}`, []string{"v1"}, false},
		"no such API":               {`{}`, nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := granting(t, tt.spec, tt.served...).Allows(t.Context(), types.NamespacedName{Namespace: "host", Name: "source"}, "guest")
			if err != nil || got != tt.want {
				t.Errorf("allowed: %t, %v", got, err)
			}
		})
	}
}

// An error is transient, so the claim is retried.
func TestErrorIsNeitherConsentNorRefusal(t *testing.T) {
	client := dynamicClient()
	client.PrependReactor("list", "referencegrants", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("the API server is away")
	})
	grants := grants.New(client, clock.RealClock{})
	if allowed, err := grants.Allows(t.Context(), types.NamespacedName{Namespace: "host", Name: "source"}, "guest"); err == nil || allowed {
		t.Errorf("allowed: %t, %v", allowed, err)
	}
}

// Thousands of claims may be refused, and each is looked at every minute.
func TestGrantsOfANamespaceAreListedOnceAMinute(t *testing.T) {
	client, clk := dynamicClient(), clocktesting.NewFakePassiveClock(time.Now())
	grants := grants.New(client, clk)
	mustList := func(want int, when string) {
		t.Helper()
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				source := types.NamespacedName{Namespace: "host", Name: fmt.Sprint("source-", i)}
				if _, err := grants.Allows(t.Context(), source, fmt.Sprint("guest-", i)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := len(client.Actions()); got != want {
			t.Errorf("%d lists %s, want %d", got, when, want)
		}
	}
	mustList(1, "for fifty claims at once")
	clk.SetTime(clk.Now().Add(59 * time.Second))
	mustList(1, "within a minute")
	clk.SetTime(clk.Now().Add(time.Second))
	mustList(2, "after a minute")
}

// Whoever owns a namespace makes any number of grants there.
func TestGrantsOfANamespaceAreReadInPagesAndNotAllOfThem(t *testing.T) {
	client, pages := dynamicClient(), 0
	client.PrependReactor("list", "referencegrants", func(a clienttesting.Action) (bool, runtime.Object, error) {
		options := a.(clienttesting.ListActionImpl).ListOptions
		if pages++; options.Limit != 20 || pages > 1 && options.Continue != fmt.Sprint(pages-1) {
			t.Errorf("page %d: limit %d, continue %q", pages, options.Limit, options.Continue)
		}
		page := &unstructured.UnstructuredList{Object: map[string]any{"kind": "ReferenceGrantList", "apiVersion": "gateway.networking.k8s.io/v1"}}
		for range 20 {
			page.Items = append(page.Items, unstructured.Unstructured{Object: map[string]any{"kind": "ReferenceGrant", "apiVersion": "gateway.networking.k8s.io/v1"}})
		}
		page.SetContinue(fmt.Sprint(pages))
		return true, page, nil
	})
	if allowed, err := grants.New(client, clock.RealClock{}).Allows(t.Context(), types.NamespacedName{Namespace: "host", Name: "source"}, "guest"); allowed || err != nil {
		t.Errorf("allowed %v, %v", allowed, err)
	}
	if pages != 50 {
		t.Errorf("%d pages are read", pages)
	}
}
