package grants_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
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
			synctest.Test(t, func(t *testing.T) {
				if got, err := answer(granting(t, tt.spec, tt.served...)); err != nil || got != tt.want {
					t.Errorf("allowed: %t, %v", got, err)
				}
			})
		})
	}
}

// answer asks until it is known whether the claim source may be cloned.
func answer(g *grants.Grants) (bool, error) {
	for {
		allowed, again, err := g.Allows(context.Background(), types.NamespacedName{Namespace: "host", Name: "source"}, "guest")
		if again.IsZero() {
			return allowed, err
		}
		time.Sleep(time.Until(again))
	}
}

// An error is transient, so the claim is retried, and so is the list a while later.
func TestErrorIsNeitherConsentNorRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := dynamicClient()
		client.PrependReactor("list", "referencegrants", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("the API server is away")
		})
		grants := grants.New(client, clock.RealClock{})
		for range 15 {
			if allowed, err := answer(grants); err == nil || allowed {
				t.Errorf("allowed: %t, %v", allowed, err)
			}
			time.Sleep(time.Second)
		}
		if n := len(client.Actions()); n != 2 {
			t.Errorf("%d lists in a quarter of a minute", n)
		}
	})
}

// Thousands of claims may be refused, and each is looked at every minute.
func TestGrantsOfANamespaceAreListedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := dynamicClient()
		grants := grants.New(client, clock.RealClock{})
		mustList := func(want int, when string) {
			t.Helper()
			for range 50 {
				if _, _, err := grants.Allows(t.Context(), types.NamespacedName{Namespace: "host", Name: "source"}, "guest"); err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
			if got := len(client.Actions()); got != want {
				t.Errorf("%d lists %s, want %d", got, when, want)
			}
		}
		mustList(1, "for fifty claims at once")
		time.Sleep(59 * time.Second)
		mustList(1, "within a minute")
		time.Sleep(time.Second)
		mustList(2, "after a minute")
	})
}

// Whoever owns a namespace makes any number of grants there, of any size.
func TestGrantsOfANamespaceAreReadInPagesAndNotAllOfThem(t *testing.T) {
	for name, tt := range map[string]struct{ size, pages int }{
		"many": {0, 20}, "as large as an object may be": {1 << 20, 1}, "large": {100 << 10, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, pages := dynamicClient(), 0
				client.PrependReactor("list", "referencegrants", func(a clienttesting.Action) (bool, runtime.Object, error) {
					options := a.(clienttesting.ListActionImpl).ListOptions
					if pages++; options.Limit != 5 || pages > 1 && options.Continue != fmt.Sprint(pages-1) {
						t.Errorf("page %d: limit %d, continue %q", pages, options.Limit, options.Continue)
					}
					return true, pageOfGrants(pages, tt.size), nil
				})
				if allowed, err := answer(grants.New(client, clock.RealClock{})); allowed || err != nil {
					t.Errorf("allowed %v, %v", allowed, err)
				}
				if pages != tt.pages {
					t.Errorf("%d pages are read", pages)
				}
			})
		})
	}
}

// pageOfGrants returns a page of grants with a finalizer of some size, and another page follows.
func pageOfGrants(number, size int) *unstructured.UnstructuredList {
	page := &unstructured.UnstructuredList{Object: map[string]any{"kind": "ReferenceGrantList", "apiVersion": "gateway.networking.k8s.io/v1"}}
	for range 5 {
		one := unstructured.Unstructured{Object: map[string]any{"kind": "ReferenceGrant", "apiVersion": "gateway.networking.k8s.io/v1"}}
		one.SetFinalizers([]string{strings.Repeat("x", size)})
		page.Items = append(page.Items, one)
	}
	page.SetContinue(fmt.Sprint(number))
	return page
}

// hanging is a client whose lists end with their contexts. It counts those that are under way.
type hanging struct {
	dynamic.Interface
	dynamic.NamespaceableResourceInterface
	lists, most atomic.Int32
}

func (h *hanging) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return h
}
func (h *hanging) Namespace(string) dynamic.ResourceInterface { return h }
func (h *hanging) List(ctx context.Context, _ metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	h.most.Store(max(h.most.Load(), h.lists.Add(1)))
	defer h.lists.Add(-1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// Whoever owns some namespaces makes lists there that take long. No worker waits for one, few are
// under way at a time, and each ends.
func TestNoWorkerWaitsForAListOfGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &hanging{}
		grants, begun := grants.New(client, clock.RealClock{}), time.Now()
		for i := range 10 {
			allowed, again, err := grants.Allows(t.Context(), types.NamespacedName{Namespace: fmt.Sprint("host-", i), Name: "source"}, "guest")
			if allowed || err != nil || again.IsZero() {
				t.Errorf("allowed: %t, again %s, %v", allowed, again, err)
			}
		}
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("a worker has waited for %s", waited)
		}
		time.Sleep(time.Minute)
		if most, left := client.most.Load(), client.lists.Load(); most != 2 || left != 0 {
			t.Errorf("%d lists at a time, and %d after a minute", most, left)
		}
	})
}
