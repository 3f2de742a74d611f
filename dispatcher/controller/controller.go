// Package controller is the dispatcher's hands: it watches, gathers what is known of one claim's UID,
// asks decide for the one thing to do next, and does it. It remembers nothing, so a restart at any
// point resumes.
package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// Options are the dispatcher's settings.
type Options struct {
	// Provisioner is the name that StorageClasses write.
	Provisioner string
	// Namespaces are where configs are read and their Jobs run; the first is the dispatcher's own.
	Namespaces []string
	// Lease is the name of the leader's lease in the first namespace; empty: there is no election.
	Lease string
	// Allowed is what pods may do beyond Pod Security "restricted", by namespace.
	Allowed jobs.Allowances
	// KubeAPI is the API server's URL as images see it.
	KubeAPI string
	// TrustUsername passes the claim's stamped username and groups on; only sound where an admission
	// policy stamps and guards them.
	TrustUsername bool
	// Grants answers whether a claim of one namespace may be copied into another; nil: never.
	Grants Grants
	// Workers is how many UIDs are looked at in parallel.
	Workers int
}

// Controller serves every claim of every storage class that names its provisioner.
type Controller struct {
	client   kubernetes.Interface
	opts     Options
	clock    clock.WithTicker
	recorder events.EventRecorder
	queue    workqueue.TypedRateLimitingInterface[types.UID]
	// revisions are those that may have come out of use, by "namespace/name".
	revisions workqueue.TypedRateLimitingInterface[string]
	caches    caches
	turns     turns
	series    series
	// leading: this replica decides; the others only fill their caches.
	leading atomic.Bool
}

// New makes a Controller; nothing runs before Start.
func New(client kubernetes.Interface, recorder events.EventRecorder, clk clock.WithTicker, opts Options) (*Controller, error) {
	c := &Controller{
		client: client, opts: opts, clock: clk, recorder: recorder,
		turns: newTurns(), series: newSeries(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](50*time.Millisecond, time.Minute),
			workqueue.TypedRateLimitingQueueConfig[types.UID]{Name: "claims", Clock: clk}),
		revisions: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "revisions", Clock: clk}),
	}
	if err := c.watch(); err != nil {
		return nil, fmt.Errorf("set up the watches: %w", err)
	}
	return c, nil
}

// Start fills the caches, leader or not: a new leader then loses no time. It returns when they are
// filled or ctx has ended, and the watches end with ctx; Stopped waits for that.
func (c *Controller) Start(ctx context.Context) bool {
	c.caches.start(ctx)
	return c.Synced(ctx)
}

// Synced waits until every cache is filled, and tells whether that was before ctx ended.
func (c *Controller) Synced(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), c.caches.synced...)
}

// Stopped waits for the watches to end, after Start's context has.
func (c *Controller) Stopped() { c.caches.shutdown() }

// Run decides and acts until ctx ends. Only the leader may be in it.
func (c *Controller) Run(ctx context.Context) {
	c.leading.Store(true)
	defer c.leading.Store(false)
	var workers sync.WaitGroup
	for range c.opts.Workers {
		workers.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	workers.Go(func() {
		for c.nextRevision(ctx) {
		}
	})
	<-ctx.Done()
	c.queue.ShutDown()
	c.revisions.ShutDown()
	workers.Wait()
}

func (c *Controller) next(ctx context.Context) bool {
	uid, quit := c.queue.Get()
	if quit {
		return false
	}
	defer c.queue.Done(uid)
	had := c.turns.begin(uid)
	wait, err := c.sync(ctx, uid)
	queued := c.end(uid, had)
	switch {
	case err != nil:
		if !errors.Is(err, context.Canceled) {
			klog.FromContext(ctx).Error(err, "cannot go on with a claim for now", "uid", uid)
		}
		c.queue.AddRateLimited(uid)
	case wait > 0:
		c.queue.Forget(uid)
		c.queue.AddAfter(uid, wait)
	case queued: // no step forward: an error before it, such as a Job that was refused, still counts
	default:
		c.queue.Forget(uid)
	}
	return true
}

// sync takes one step for one UID. What it returns is when to look again; zero: when something changes.
// An action that is not certain is decided a second time, on live facts.
func (c *Controller) sync(ctx context.Context, uid types.UID) (time.Duration, error) {
	seen, err := c.observe(ctx, c.caches, uid)
	if err != nil {
		return 0, err
	}
	action := decide.Decide(seen.view)
	if !decide.SafeOnStaleFacts(action) {
		if seen, err = c.observe(ctx, c.live(seen), uid); err != nil {
			return 0, err
		}
		action = decide.Decide(seen.view)
	}
	return c.act(ctx, seen, action)
}
