package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/act"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/claim"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/class"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/run"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/series"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/slots"
)

// Options are the dispatcher's settings.
type Options struct {
	config.Dispatcher

	// Namespaces are where configs are read and their Jobs run; the first is that of --namespace.
	Namespaces []string
	// Allowed is what pods may do beyond Pod Security "restricted", by namespace.
	Allowed jobs.Allowances
	// KubeAPI is the API server's URL as images see it.
	KubeAPI string
	// ClusterUID is the UID of the namespace kube-system, which images are given. It is empty if
	// there is none.
	ClusterUID string
	// TrustUsername passes the claim's stamped username and groups on to images. That is safe only
	// if an admission policy stamps and guards them.
	TrustUsername bool
	// Grants answers whether a claim may be cloned into another namespace. Nil means never.
	Grants cluster.Grants
	// MissingIn returns which permissions the dispatcher lacks in a config namespace, empty for
	// none. It is asked about all but the first. Nil means that none are missing.
	MissingIn func(ctx context.Context, namespace string) (string, error)
	// NoteNamespaces notes the config namespaces on the leader's lease. It returns the lease, and
	// the namespaces that an earlier leader served and this one does not. Nil means that there is
	// no election.
	NoteNamespaces func(ctx context.Context) (lease *coordinationv1.Lease, dropped []string, err error)
	// ListJobs lists the metadata of the Jobs of a config namespace at the API server. Nil means
	// that a new leader does not wait for its cache to show them.
	ListJobs func(ctx context.Context, namespace string) (*metav1.PartialObjectMetadataList, error)
	// AheadOfBinder lets claims be served before the PV controller has asked for their volumes.
	AheadOfBinder bool
	// Workers is how many UIDs are reconciled in parallel, how many Jobs and classes, and how many
	// claims of one class are launched.
	Workers int
	// Claims, Runs, Classes and Revisions are the queues of UIDs, of Jobs, of classes and of config
	// revisions that are to be reconciled. Nil means new ones.
	Claims                   workqueue.TypedDelayingInterface[types.UID]
	Runs, Classes, Revisions workqueue.TypedDelayingInterface[string]
}

// Controller provisions for every claim of every storage class that names its provisioner.
type Controller struct {
	opts   Options
	clock  clock.WithTicker
	series series.Series

	caches   *cluster.Caches
	slots    *slots.Slots
	observer *observe.Observer
	actor    *act.Actor

	claims  claim.Loop
	runs    run.Loop
	classes class.Loop
	// revisions is the queue of the config revisions that may be unused, by "namespace/name".
	revisions workqueue.TypedRateLimitingInterface[string]
	// leading is set in the replica that reconciles. The others only fill their caches, and enqueue
	// nothing.
	leading atomic.Bool
	// unserved are the config namespaces in which permissions are missing, or were until its caches
	// are filled. Only checkAccess uses it.
	unserved map[string]bool
	// log is where the handlers of watch events log. Start sets it.
	log klog.Logger
	// background is what runs beside the workers, leader or not.
	background sync.WaitGroup
}

// New returns a Controller. Nothing runs before Start.
func New(client kubernetes.Interface, recorder events.EventRecorder, clk clock.WithTickerAndDelayedExecution, opts Options) (*Controller, error) {
	c := &Controller{
		opts: opts, clock: clk, series: series.New(), unserved: map[string]bool{},
		revisions: newQueue("revisions", time.Second, clk, workqueue.DefaultQueue[string](), opts.Revisions),
	}
	c.runs.Queue = newQueue("runs", 50*time.Millisecond, clk, newFairQueue(c.namespaceOfJob), opts.Runs)
	c.classes.Queue = newQueue("classes", 50*time.Millisecond, clk, workqueue.DefaultQueue[string](), opts.Classes)
	c.claims.Queue = newQueue("claims", 50*time.Millisecond, clk, newFairQueue(c.namespaceOf), opts.Claims)
	caches, err := cluster.New(client, opts.Provisioner, opts.Namespaces, opts.Grants, c.handlers())
	if err != nil {
		return nil, fmt.Errorf("set up the watches: %w", err)
	}
	c.caches = caches
	written := cluster.NewWritten(caches, clk)
	c.slots = slots.New(caches, clk, c.classes.Enqueue)
	c.observer = &observe.Observer{Clock: clk, AheadOfBinder: opts.AheadOfBinder, Resolver: resolve.Resolver{
		Caches: caches, Dispatcher: opts.Dispatcher, Namespace: opts.Namespaces[0], Allowed: opts.Allowed, Judged: &resolve.Judged{},
	}}
	c.actor = &act.Actor{
		Client: client, Recorder: recorder, Clock: clk, Slots: c.slots, Series: c.series,
		Writes: written, Provisioner: opts.Provisioner, KubeAPI: opts.KubeAPI,
		ClusterUID: opts.ClusterUID, TrustUsername: opts.TrustUsername, Allowed: opts.Allowed,
	}
	c.claims = claim.Loop{
		Caches: caches, Written: written, Observer: c.observer, Actor: c.actor, Slots: c.slots, Clock: clk,
		Runs: &c.runs, Queue: c.claims.Queue, Recovering: c.recovering,
	}
	c.runs = run.Loop{Caches: caches, Written: written, Actor: c.actor, Clock: clk, Queue: c.runs.Queue, Claims: &c.claims}
	c.classes = class.Loop{Slots: c.slots, Actor: c.actor, Queue: c.classes.Queue, Claims: &c.claims, Workers: opts.Workers, Recovering: c.recovering}
	return c, nil
}

// longestPause is the longest pause before an item of a queue that failed comes again.
const longestPause = time.Minute

// newQueue returns a queue that takes its items in an order, or as another one does if that is not
// nil. An item that has failed comes again after a pause of first, which doubles each time.
func newQueue[T comparable](name string, first time.Duration, clk clock.WithTicker, order workqueue.Queue[T], queue workqueue.TypedDelayingInterface[T]) workqueue.TypedRateLimitingInterface[T] {
	if queue == nil {
		queue = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{
			Name: name, Clock: clk, Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[T]{Name: name, Clock: clk, Queue: order}),
		})
	}
	return workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.NewTypedItemExponentialFailureRateLimiter[T](first, longestPause),
		workqueue.TypedRateLimitingQueueConfig[T]{Name: name, Clock: clk, DelayingQueue: queue})
}

// Start fills the caches, leader or not, so that a new leader loses no time. It returns when they
// are filled or ctx has ended. The watches end with ctx, and Stopped waits for that.
func (c *Controller) Start(ctx context.Context) bool {
	c.log = klog.FromContext(ctx)
	c.checkAccess(ctx)
	c.background.Go(func() { c.recheckAccess(ctx) })
	c.caches.Start(ctx)
	return c.Synced(ctx)
}

// Synced waits until every cache is filled. It returns false if ctx ended before.
func (c *Controller) Synced(ctx context.Context) bool { return c.caches.WaitForSync(ctx) }

// Stopped waits for the watches to end, after the context of Start has ended.
func (c *Controller) Stopped() {
	c.caches.Shutdown()
	c.background.Wait()
}

// Run reconciles until ctx ends. Only the leader may run it.
func (c *Controller) Run(ctx context.Context) {
	c.leading.Store(true)
	defer c.leading.Store(false)
	c.noteNamespaces(ctx)
	c.awaitJobs(ctx)
	c.enqueueAll()
	claims := work[types.UID]{"claim", c.claims.Queue, c.claims.Reconcile, c.claims.HasProgressed}
	runs := work[string]{"Job", c.runs.Queue, c.runs.Reconcile, always}
	classes := work[string]{"class", c.classes.Queue, c.classes.Reconcile, always}
	revisions := work[string]{"config revision", c.revisions, c.reconcileRevision, always}
	var workers sync.WaitGroup
	workers.Go(func() { c.recheckDropped(ctx) })
	for range c.opts.Workers {
		workers.Go(func() {
			for processNext(ctx, c, claims) {
			}
		})
		workers.Go(func() {
			for processNext(ctx, c, runs) {
			}
		})
		workers.Go(func() {
			for processNext(ctx, c, classes) {
			}
		})
	}
	workers.Go(func() {
		for processNext(ctx, c, revisions) {
		}
	})
	<-ctx.Done()
	c.claims.Queue.ShutDown()
	c.runs.Queue.ShutDown()
	c.classes.Queue.ShutDown()
	c.revisions.ShutDown()
	workers.Wait()
}

// work is a queue of items of one kind, and what is done for each.
type work[T comparable] struct {
	kind      string
	queue     workqueue.TypedRateLimitingInterface[T]
	reconcile func(context.Context, T) (time.Duration, error)
	// hasProgressed reports whether the failures of an item that was reconciled are forgotten.
	hasProgressed func(T) bool
}

// processNext reconciles the next item of a queue. It returns false when the queue is shut down.
func processNext[T comparable](ctx context.Context, c *Controller, w work[T]) bool {
	key, quit := w.queue.Get()
	if quit {
		return false
	}
	defer w.queue.Done(key)
	var requeueAfter time.Duration
	err := c.recovering(ctx, fmt.Sprint(key), func() (err error) {
		requeueAfter, err = w.reconcile(ctx, key)
		return err
	})
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			klog.FromContext(ctx).Error(err, "Failed to reconcile", "kind", w.kind, "key", key)
		}
		w.queue.AddRateLimited(key)
		return true
	}
	if requeueAfter > 0 {
		w.queue.AddAfter(key, requeueAfter)
	}
	if w.hasProgressed(key) {
		w.queue.Forget(key)
	}
	return true
}

func always(string) bool { return true }

// CountDroppedEvent counts an event that was not recorded, because too many were waiting.
func (c *Controller) CountDroppedEvent(eventType string) { c.series.CountDroppedEvent(eventType) }

// RegisterMetrics adds the dispatcher's series to a registry. A series that is never registered is
// not counted.
func (c *Controller) RegisterMetrics(r series.Registry) { c.series.Register(r, c.backlog) }
