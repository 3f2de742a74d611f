package grants

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// For how long the grants of a namespace are kept, and the error of a list that failed. Many claims
// may ask for copies from it, and each is looked at every minute while it is refused. Both are much
// longer than a list may take.
const (
	grantsKept = time.Minute
	errorKept  = 2 * listTimeout
)

// No worker waits for a list, since whoever owns a namespace can make it long: such lists once held
// all workers, and so all classes (TestNoWorkerWaitsForAListOfGrants).
const (
	listTimeout   = 5 * time.Second
	listsAtATime  = 2
	askAgainAfter = time.Second
)

// Grants reads consent from ReferenceGrants. If that API is not served, no namespace consents.
type Grants struct {
	client dynamic.Interface
	clock  clock.PassiveClock
	// lists has room for the lists at a time. Others wait in order.
	lists chan struct{}

	mu          sync.Mutex
	byNamespace map[string]grantsOfNamespace
}

// grantsOfNamespace are the grants of one namespace, or why they could not be listed.
type grantsOfNamespace struct {
	grants []grant
	err    error
	until  time.Time // zero while they are being listed
}

// New returns Grants that have not been read yet.
func New(client dynamic.Interface, clk clock.PassiveClock) *Grants {
	return &Grants{client: client, clock: clk, lists: make(chan struct{}, listsAtATime), byNamespace: map[string]grantsOfNamespace{}}
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

// Allows reports whether a claim in the namespace to may clone the claim source. If again is set,
// that is not known yet, and is to be asked again then. Its error is transient. It notices a new
// grant, or an API that is installed later, within a minute.
func (g *Grants) Allows(ctx context.Context, source types.NamespacedName, to string) (allowed bool, again time.Time, err error) {
	known := g.of(ctx, source.Namespace)
	switch {
	case known.err != nil:
		return false, again, fmt.Errorf("list the ReferenceGrants in %s: %w", source.Namespace, known.err)
	case known.until.IsZero():
		return false, g.clock.Now().Add(askAgainAfter), nil
	}
	return slices.ContainsFunc(known.grants, func(one grant) bool { return one.allows(source.Name, to) }), again, nil
}

// of returns what is known of the grants of a namespace, and lets them be listed if nothing is. It
// forgets what is too old.
func (g *Grants) of(ctx context.Context, namespace string) grantsOfNamespace {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	maps.DeleteFunc(g.byNamespace, func(_ string, old grantsOfNamespace) bool { return !old.until.IsZero() && !now.Before(old.until) })
	known, found := g.byNamespace[namespace]
	if !found {
		g.byNamespace[namespace] = known
		go g.keep(context.WithoutCancel(ctx), namespace)
	}
	return known
}

// keep lists the grants of a namespace and keeps them.
func (g *Grants) keep(ctx context.Context, namespace string) {
	g.lists <- struct{}{}
	defer func() { <-g.lists }()
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	found, kept := grantsOfNamespace{}, grantsKept
	if found.grants, found.err = g.list(ctx, namespace); found.err != nil {
		kept = errorKept
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	found.until = g.clock.Now().Add(kept)
	g.byNamespace[namespace] = found
}

// Whoever owns a namespace makes any number of ReferenceGrants there, with annotations as large as
// an object may be. The first page beyond a limit is the last one that is read.
const (
	grantsOfAPage = 5
	mostGrants    = 100 // the others of a namespace count as not there
	mostBytes     = 1 << 20
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
	size := 0
	for o := (metav1.ListOptions{Limit: grantsOfAPage}); ; {
		page, err := api.List(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, u := range page.Items {
			text, err := u.MarshalJSON()
			if err != nil {
				return nil, err
			}
			size += len(text)
			var one grant
			if json.Unmarshal(text, &one) == nil {
				out = append(out, one)
			}
		}
		if o.Continue = page.GetContinue(); o.Continue == "" || len(out) >= mostGrants || size > mostBytes {
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
