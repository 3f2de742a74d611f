package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/slots"
)

// Dispatcher sees a cluster as the dispatcher does that is deployed there.
type Dispatcher struct {
	Client kubernetes.Interface
	Clock  clock.WithDelayedExecution
	// Serving are the flags of the Deployment At, which also names the lease.
	Serving options.Serving
	At      types.NamespacedName
	Image   string
	// Election says where the lease is by which the replicas choose their leader.
	Election options.Election
	// Grants answers whether a claim may be cloned into another namespace. Nil means never.
	Grants cluster.Grants

	caches *cluster.Caches
	// leader holds the lease, idle is why no dispatcher is at work, each empty for none.
	leader, idle string
	// writers are the ServiceAccounts, "namespace:name", of which it was asked whether they may
	// create PersistentVolumes.
	writers map[string]bool
}

// Find reads the flags of the dispatcher that is deployed as at.
func Find(ctx context.Context, client kubernetes.Interface, at types.NamespacedName) (*Dispatcher, error) {
	deployment, err := client.AppsV1().Deployments(at.Namespace).Get(ctx, at.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get the dispatcher's Deployment %s (--dispatcher names it): %w", at, err)
	}
	serving, err := options.Of(deployment)
	if err != nil {
		return nil, err
	}
	election, err := options.ElectionOf(deployment)
	return &Dispatcher{
		Client: client, Clock: clock.RealClock{}, Serving: serving, At: at, Election: election, Image: quote.Name(options.ContainerOf(deployment).Image),
	}, err
}

// errNotSynced is the error of caches that were not filled in time.
var errNotSynced = errors.New("the API server did not list all objects in time: it does not answer, or refuses a list or a watch that it has said to allow")

// Open fills the caches. They are filled until ctx ends.
func (d *Dispatcher) Open(ctx context.Context) (err error) {
	d.caches, err = cluster.New(d.Client, d.Serving.Provisioner, d.Serving.Namespaces(), d.Grants, cluster.NoHandlers())
	if err != nil {
		return fmt.Errorf("set up the watches: %w", err)
	}
	d.caches.Start(ctx)
	if !d.caches.WaitForSync(ctx) {
		return errNotSynced
	}
	return d.readLease(ctx)
}

// readLease finds which replica leads. Without a lease, or the permission to read it, nothing is
// said of that.
func (d *Dispatcher) readLease(ctx context.Context) error {
	if d.Election.Without {
		return nil
	}
	lease, err := d.Client.CoordinationV1().Leases(d.lease().Namespace).Get(ctx, options.Name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("get the dispatcher's lease %s: %w", d.lease(), err)
	}
	d.idle = whyIdle(lease, err == nil, d.Clock.Now())
	d.leader = shownName(ptr.Deref(lease.Spec.HolderIdentity, ""))
	return nil
}

// lease names the lease that all replicas share.
func (d *Dispatcher) lease() types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(d.Election.Namespace, d.At.Namespace), Name: options.Name}
}

// Close waits for the watches to end, after the context of Open has ended.
func (d *Dispatcher) Close() { d.caches.Shutdown() }

// renewedWithin is how old the renewal of a lease may be. The leader renews it every half second,
// and clocks differ.
const renewedWithin = time.Minute

// whyIdle returns why no dispatcher is at work, or nothing.
func whyIdle(lease *coordinationv1.Lease, exists bool, now time.Time) string {
	switch {
	case !exists:
		return "no dispatcher has ever led"
	case lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "":
		return "no dispatcher leads"
	case lease.Spec.RenewTime == nil || now.Sub(lease.Spec.RenewTime.Time) > renewedWithin:
		return "the dispatcher " + quote.Name(*lease.Spec.HolderIdentity) + " has not renewed its lease for a minute"
	default:
		return ""
	}
}

// next returns what the dispatcher does next for a UID, from what it would see, and a hint. A claim
// that waits while a slot is free is launched: who waits for it besides is known to the dispatcher
// alone.
func (d *Dispatcher) next(ctx context.Context, uid types.UID, hint observe.Hint) (*observe.Observation, decide.Action, error) {
	resolver, err := d.resolver()
	if err != nil {
		return nil, nil, err
	}
	observer := &observe.Observer{Clock: d.Clock, AheadOfBinder: d.Serving.AheadOfBinder, Resolver: resolver}
	o, err := observer.Observe(ctx, d.caches.Cached(), uid, hint)
	if err != nil {
		return nil, nil, err
	}
	action := decide.Decide(o.View)
	if await, ok := action.(decide.AwaitSlot); ok && await.Behind == nil {
		if cfg := o.ConfigFor(await.Verb).Config; d.slots().Used(slots.KeyOf(cfg.Source), cfg.MaxParallel) < cfg.MaxParallel {
			action = decide.Decide(o.View.WithSlot())
		}
	}
	return o, action, nil
}

// slots returns the slots of the classes. No claim waits for one in this program.
func (d *Dispatcher) slots() *slots.Slots {
	return slots.New(d.caches, d.Clock, func(slots.ClassKey, time.Duration) {})
}

// resolver returns what finds the configs of classes.
func (d *Dispatcher) resolver() (resolve.Resolver, error) {
	allowed, err := d.Serving.Allowances()
	return resolve.Resolver{
		Caches: d.caches, Dispatcher: d.Serving.Dispatcher(), Namespace: d.Serving.Namespace, Allowed: allowed, Judged: &resolve.Judged{},
	}, err
}
