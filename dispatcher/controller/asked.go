package controller

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/run"
)

// What the loop of the Jobs asks and says about a claim.

// processNextRun reconciles the next Job of the queue. It returns false when the queue is shut down.
func (c *Controller) processNextRun(ctx context.Context) bool {
	key, quit := c.runs.Queue.Get()
	if quit {
		return false
	}
	defer c.runs.Queue.Done(key)
	var requeueAfter time.Duration
	err := c.recovering(ctx, key, func() (err error) {
		requeueAfter, err = c.runs.Reconcile(ctx, key)
		return err
	})
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			klog.FromContext(ctx).Error(err, "Failed to reconcile Job", "job", key)
		}
		c.runs.Queue.AddRateLimited(key)
		return true
	}
	c.runs.Queue.Forget(key)
	if requeueAfter > 0 {
		c.runs.Queue.AddAfter(key, requeueAfter)
	}
	return true
}

// Say returns what a claim says about a Job, by its name. A write that was refused is tried again later.
// Where the claim has something else to do, its own loop does that.
func (c *Controller) Say(ctx context.Context, uid types.UID, job string, look run.Look) (o *observe.Observation, action decide.Action, err error) {
	isEnough := map[run.Look]func(decide.Action) bool{run.Cached: always, run.AsOwn: isEnoughForClaim, run.Live: never}[look]
	about := func(v decide.View) decide.Action { return decide.ForJob(v, job) }
	err = c.recovering(ctx, string(uid), func() (err error) {
		o, action, err = c.observeAndDecide(ctx, uid, c.hints.get(uid, c.clock.Now()), about, isEnough)
		return err
	})
	switch {
	case err != nil:
		return nil, nil, err
	case o.Jobs == nil: // its own loop waits for the caches
		action = decide.Wait{Why: "the caches do not show the last write"}
	case o.View.IsRefused(action):
		action = decide.Wait{Why: "the write was refused a moment ago"}
	case !decide.IsOnJob(action):
		c.leaveToClaim(uid, action, look)
	}
	return o, action, nil
}

// leaveToClaim lets the loop of the claims do what is its to do. On what the caches showed it may have
// left it to the loop of the Jobs, and would again.
func (c *Controller) leaveToClaim(uid types.UID, action decide.Action, look run.Look) {
	_, reports := action.(decide.ReportProblem)
	switch {
	case look == run.Live && (reports || decide.IsWrite(action)):
		c.lookLive.Store(uid, nil)
	case !decide.IsWrite(action):
		return
	}
	c.enqueue(uid)
}

// confirmAgain is how soon a gated Job is judged again after a change of one of its claims. One whose PV
// changes all the time would keep the dispatcher at work otherwise.
const confirmAgain = 50 * time.Millisecond

// askRun enqueues the Job of a run about which a claim has something to say.
func (c *Controller) askRun(o *observe.Observation, action decide.Action) {
	key := cluster.KeyOf(o.Jobs[decide.RunOf(action)])
	if _, confirms := action.(decide.Confirm); confirms { // it was enqueued when its pod was created
		c.runs.Queue.AddAfter(key, confirmAgain)
		return
	}
	c.runs.Ask(key, o.UID)
}

// Enqueue lets a claim be reconciled.
func (c *Controller) Enqueue(uid types.UID) { c.enqueue(uid) }

// Learn keeps what a refused write has taught about a claim, or nil.
func (c *Controller) Learn(uid types.UID, hint *observe.Hint) {
	c.hints.put(uid, hint, c.clock.Now())
}

// Cancelled notes that a gated run of a claim was cancelled.
func (c *Controller) Cancelled(uid types.UID) { c.hints.cancelled(uid, c.clock.Now()) }
