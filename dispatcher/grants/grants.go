package grants

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// The API by which one namespace consents to references from another. Kubernetes itself uses it for
// data sources across namespaces. A cluster serves one or more of its versions, and each has all
// grants.
const grantGroup, grantResource = "gateway.networking.k8s.io", "referencegrants"

var grantVersions = []string{"v1", "v1beta1"}

// grantsKept is for how long the grants of a namespace are kept. Many claims may ask for copies
// from it, and each is looked at every minute while it is refused.
const grantsKept = time.Minute

// Grants reads consent from ReferenceGrants. If that API is not served, no namespace consents.
type Grants struct {
	client dynamic.Interface
	clock  clock.PassiveClock

	mu          sync.Mutex
	byNamespace map[string]grantsOfNamespace
}

// grantsOfNamespace lists the grants of one namespace. Whoever asks first lists them, and all
// others wait for that.
type grantsOfNamespace struct {
	until time.Time
	list  func() ([]grant, error)
}

// New returns Grants that have not been read yet.
func New(client dynamic.Interface, clk clock.PassiveClock) *Grants {
	return &Grants{client: client, clock: clk, byNamespace: map[string]grantsOfNamespace{}}
}

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

// Allows reports whether a claim in the namespace to may clone the claim source. Its error is
// transient. It notices a new grant, or an API that is installed later, within a minute.
func (g *Grants) Allows(ctx context.Context, source types.NamespacedName, to string) (bool, error) {
	grants, err := g.of(ctx, source.Namespace)
	if err != nil {
		return false, fmt.Errorf("list the ReferenceGrants in %s: %w", source.Namespace, err)
	}
	return slices.ContainsFunc(grants, func(one grant) bool { return one.allows(source.Name, to) }), nil
}

// of returns the grants of a namespace, and lists them if that was not done in the last minute.
func (g *Grants) of(ctx context.Context, namespace string) ([]grant, error) {
	kept := g.kept(ctx, namespace)
	grants, err := kept.list()
	if err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.byNamespace, namespace)
	}
	return grants, err
}

// kept returns the grants of a namespace that are kept for now, and forgets what is too old.
func (g *Grants) kept(ctx context.Context, namespace string) grantsOfNamespace {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	maps.DeleteFunc(g.byNamespace, func(_ string, old grantsOfNamespace) bool { return !now.Before(old.until) })
	kept, found := g.byNamespace[namespace]
	if !found {
		kept = grantsOfNamespace{now.Add(grantsKept), sync.OnceValues(func() ([]grant, error) { return g.list(ctx, namespace) })}
		g.byNamespace[namespace] = kept
	}
	return kept
}

// Whoever owns a namespace makes any number of ReferenceGrants there, with annotations as large as
// an object may be.
const (
	grantsOfAPage = 20
	mostGrants    = 1000 // the others of a namespace count as not there
)

// list returns a namespace's grants by the first version that is served, and none if none is.
func (g *Grants) list(ctx context.Context, namespace string) ([]grant, error) {
	for _, version := range grantVersions {
		api := g.client.Resource(schema.GroupVersionResource{Group: grantGroup, Version: version, Resource: grantResource}).Namespace(namespace)
		grants, err := inPages(ctx, api)
		if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			return grants, err
		}
	}
	return nil, nil
}

// inPages returns the part of each grant that matters here.
func inPages(ctx context.Context, api dynamic.ResourceInterface) ([]grant, error) {
	var out []grant
	for o := (metav1.ListOptions{Limit: grantsOfAPage}); ; {
		page, err := api.List(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, u := range page.Items {
			var one grant
			if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &one) == nil {
				out = append(out, one)
			}
		}
		if o.Continue = page.GetContinue(); o.Continue == "" || len(out) >= mostGrants {
			return out, nil
		}
	}
}

func (g grant) allows(name, to string) bool {
	return slices.ContainsFunc(g.Spec.From, func(f grantFrom) bool {
		return f.Group == "" && f.Kind == contract.SourceClaim && f.Namespace == to
	}) && slices.ContainsFunc(g.Spec.To, func(t grantTo) bool {
		return t.Group == "" && t.Kind == contract.SourceClaim && (t.Name == nil || *t.Name == "" || *t.Name == name)
	})
}
