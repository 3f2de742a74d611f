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
	"github.com/flex-provisioner/flex-provisioner/dispatcher/class"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
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
	written  *cluster.Written

	queue   workqueue.TypedRateLimitingInterface[types.UID]
	runs    run.Loop
	classes class.Loop
	// revisions is the queue of the config revisions that may be unused, by "namespace/name".
	revisions workqueue.TypedRateLimitingInterface[string]
	hints     hints
	// lookLive are the UIDs of the claims that are to be looked at on live facts next.
	lookLive sync.Map
	// offered are the UIDs of the claims that are offered a slot, and have something to write
	// before.
	offered sync.Map
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
	c.queue = newQueue("claims", 50*time.Millisecond, clk, newFairQueue(c.namespaceOf), opts.Claims)
	caches, err := cluster.New(client, opts.Provisioner, opts.Namespaces, opts.Grants, c.handlers())
	if err != nil {
		return nil, fmt.Errorf("set up the watches: %w", err)
	}
	c.caches = caches
	c.written = cluster.NewWritten(caches, clk)
	c.slots = slots.New(caches, clk, c.classes.Enqueue)
	c.observer = &observe.Observer{Clock: clk, AheadOfBinder: opts.AheadOfBinder, Resolver: resolve.Resolver{
		Caches: caches, Dispatcher: opts.Dispatcher, Namespace: opts.Namespaces[0], Allowed: opts.Allowed, Judged: &resolve.Judged{},
	}}
	c.actor = &act.Actor{
		Client: client, Recorder: recorder, Clock: clk, Slots: c.slots, Series: c.series,
		Writes: c.written, Provisioner: opts.Provisioner, KubeAPI: opts.KubeAPI,
		ClusterUID: opts.ClusterUID, TrustUsername: opts.TrustUsername, Allowed: opts.Allowed,
	}
	c.runs.Caches, c.runs.Written, c.runs.Actor, c.runs.Clock, c.runs.Claims = caches, c.written, c.actor, clk, c
	c.classes.Slots, c.classes.Actor, c.classes.Claims, c.classes.Workers = c.slots, c.actor, c, opts.Workers
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
	var workers sync.WaitGroup
	workers.Go(func() { c.recheckDropped(ctx) })
	for range c.opts.Workers {
		workers.Go(func() {
			for c.processNextClaim(ctx) {
			}
		})
		workers.Go(func() {
			for processNext(ctx, c, c.runs.Queue, "Job", c.runs.Reconcile) {
			}
		})
		workers.Go(func() {
			for processNext(ctx, c, c.classes.Queue, "class", c.classes.Reconcile) {
			}
		})
	}
	workers.Go(func() {
		for processNext(ctx, c, c.revisions, "config revision", c.reconcileRevision) {
		}
	})
	<-ctx.Done()
	c.queue.ShutDown()
	c.runs.Queue.ShutDown()
	c.classes.Queue.ShutDown()
	c.revisions.ShutDown()
	workers.Wait()
}

// processNext reconciles the next item of a queue of what is not a claim. It returns false when the
// queue is shut down.
func processNext(ctx context.Context, c *Controller, queue workqueue.TypedRateLimitingInterface[string], kind string, reconcile func(context.Context, string) (time.Duration, error)) bool {
	key, quit := queue.Get()
	if quit {
		return false
	}
	defer queue.Done(key)
	var requeueAfter time.Duration
	err := c.Recovering(ctx, key, func() (err error) {
		requeueAfter, err = reconcile(ctx, key)
		return err
	})
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			klog.FromContext(ctx).Error(err, "Failed to reconcile", "kind", kind, "key", key)
		}
		queue.AddRateLimited(key)
		return true
	}
	queue.Forget(key)
	if requeueAfter > 0 {
		queue.AddAfter(key, requeueAfter)
	}
	return true
}

// processNextClaim reconciles the next UID of the queue. It returns false when the queue is shut
// down.
func (c *Controller) processNextClaim(ctx context.Context) bool {
	uid, quit := c.queue.Get()
	if quit {
		return false
	}
	defer c.queue.Done(uid)
	var requeueAfter time.Duration
	err := c.Recovering(ctx, string(uid), func() (err error) {
		requeueAfter, err = c.reconcile(ctx, uid)
		return err
	})
	c.slots.FreedSoon(uid)
	switch {
	case err != nil:
		c.retryLater(ctx, uid, err)
		return true
	case requeueAfter > 0:
		c.queue.AddAfter(uid, requeueAfter)
	}
	if !c.slots.Awaits(uid) { // or it made no progress, and an earlier error, such as a refused Job, still counts for its rate limit
		c.queue.Forget(uid)
	}
	return true
}

// retryLater lets a claim be reconciled after a pause, which doubles with each failure.
func (c *Controller) retryLater(ctx context.Context, uid types.UID, err error) {
	if !errors.Is(err, context.Canceled) {
		klog.FromContext(ctx).Error(err, "Failed to reconcile claim", "uid", uid)
	}
	c.queue.AddRateLimited(uid)
}

// reconcile takes one step for one UID. It returns when to take the next, zero for when something
// changes.
func (c *Controller) reconcile(ctx context.Context, uid types.UID) (time.Duration, error) {
	isEnough, judge := isEnoughForClaim, decide.Decide
	if _, looksLive := c.lookLive.LoadAndDelete(uid); looksLive {
		isEnough = never
	}
	if _, isOffered := c.offered.LoadAndDelete(uid); isOffered {
		judge = decideOffered
	}
	o, action, err := c.observeAndDecide(ctx, uid, c.hints.get(uid, c.clock.Now()), judge, isEnough)
	if err != nil {
		c.lookLive.Store(uid, nil) // what the caches show may be enough, and would only lead to the same look
		return 0, err
	}
	if _, awaits := action.(decide.AwaitSlot); !awaits {
		c.slots.Leave(uid)
	}
	if o.View.IsRefused(action) {
		return c.hints.recheck(uid, c.clock.Now(), 0), nil
	}
	after, err := c.carryOut(ctx, o, action)
	c.reportRepeated(o, action, err)
	return after, err
}

// carryOut carries out one action. It returns when to take the next step: at once if a refused
// write has taught something.
func (c *Controller) carryOut(ctx context.Context, o *observe.Observation, action decide.Action) (time.Duration, error) {
	if _, keeps := action.(decide.KeepVolume); keeps {
		for _, r := range o.View.RevokedDeletes() {
			c.runs.Ask(cluster.KeyOf(o.Jobs[r.Name]), o.UID)
		}
	}
	if decide.IsOnJob(action) {
		c.askRun(o, action)
		if _, confirms := action.(decide.Confirm); !confirms {
			return cluster.BehindFor, nil // in case it has something else to do when it is asked
		}
		action = decide.Wait{Until: c.clock.Now().Add(cluster.BehindFor), Why: "its Job is not confirmed yet"}
	}
	result, err := c.actor.Do(ctx, o, action)
	c.slowReturns(o, action)
	if c.hints.put(o.UID, result.Hint, c.clock.Now()); result.Hint != nil && err == nil {
		c.queue.Add(o.UID)
	}
	return c.hints.recheck(o.UID, c.clock.Now(), result.RequeueAfter), err
}

// failuresReported is how many times in a row a UID has failed when that is reported, after some
// ten seconds.
const failuresReported = 8

// reportRepeated reports an error that comes again and again. A webhook that does not answer fails
// each write with what looks like a fault of the API server, and claims once waited for it without
// an event (TestAWriteWhoseWebhookDoesNotAnswerIsReported). A refused write is reported where it is
// refused.
func (c *Controller) reportRepeated(o *observe.Observation, action decide.Action, err error) {
	if err != nil && !patch.IsRefused(err) && !errors.Is(err, context.Canceled) && c.queue.NumRequeues(o.UID) >= failuresReported {
		c.actor.ReportFailed(o, decide.RunOf(action), err)
	}
}

// isEnoughForClaim reports whether what the caches show is enough for an action as the loop of the
// claims carries it out. That of the Jobs looks again before it writes on a Job.
func isEnoughForClaim(action decide.Action) bool {
	return decide.IsSafeOnStaleFacts(action) || decide.IsOnJob(action)
}

func always(decide.Action) bool { return true }

func never(decide.Action) bool { return false }

// observeAndDecide observes a UID and decides, on what the caches show if that is enough for the
// action, and otherwise on live facts.
func (c *Controller) observeAndDecide(ctx context.Context, uid types.UID, hint observe.Hint, judge func(decide.View) decide.Action, isEnough func(decide.Action) bool) (*observe.Observation, decide.Action, error) {
	since := c.written.Since(uid)
	if !since.IsZero() && c.clock.Since(since) < cluster.BehindFor {
		return &observe.Observation{UID: uid}, decide.Wait{Until: since.Add(cluster.BehindFor), Why: "the caches do not show the last write"}, nil
	}
	o, err := c.observer.Observe(ctx, c.caches.Cached(), uid, hint)
	if err != nil {
		return nil, nil, err
	}
	if since.IsZero() {
		action := judge(o.View)
		if report := c.reportUnserved(o, action); report != nil {
			return o, *report, nil
		}
		if isEnough(action) {
			return o, action, nil
		}
	}
	if o, err = c.observer.Observe(ctx, c.caches.Live(o.At, c.observer.Namespaces(o)...), uid, hint); err != nil {
		return nil, nil, err
	}
	return o, judge(o.View), nil
}

// CountDroppedEvent counts an event that was not recorded, because too many were waiting.
func (c *Controller) CountDroppedEvent(eventType string) { c.series.CountDroppedEvent(eventType) }

// RegisterMetrics adds the dispatcher's series to a registry. A series that is never registered is
// not counted.
func (c *Controller) RegisterMetrics(r series.Registry) { c.series.Register(r, c.backlog) }
