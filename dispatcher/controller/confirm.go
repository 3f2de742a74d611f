package controller

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/act"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// recheckMembers is how soon a claim of a batch is looked at again when something about another of
// its claims comes first.
const recheckMembers = 200 * time.Millisecond

// confirm confirms a gated run for all the claims that it serves. A batch of deletes is cancelled
// as soon as one of them is not wanted any more: what its container is given cannot be changed. Any
// other batch goes on as long as one is wanted.
func (c *Controller) confirm(ctx context.Context, o *observe.Observation, run decide.Run) (time.Duration, error) {
	wanted, members := 0, make([]*observe.Observation, 0, len(run.UIDs))
	for _, uid := range run.UIDs {
		member, readiness, err := c.readinessOf(ctx, o, types.UID(uid), run.Name)
		switch {
		case err != nil:
			c.leaveOut(ctx, types.UID(uid), err)
			return c.recheckBlocked(o.Jobs[run.Name]), nil
		case readiness == decide.Blocked:
			return c.recheckBlocked(o.Jobs[run.Name]), nil
		case readiness == decide.Ready:
			wanted++
		case run.Verb == contract.Delete:
			return c.cancel(ctx, o, decide.Cancel{Run: run})
		}
		members = append(members, member)
	}
	if wanted == 0 {
		return c.cancel(ctx, o, decide.Cancel{Run: run})
	}
	result, err := c.actor.Confirm(ctx, o, run, members...)
	c.hints.put(o.UID, result.Hint, c.clock.Now())
	return c.hints.recheck(o.UID, c.clock.Now(), result.RequeueAfter), err
}

// leaveOut leaves a claim of a batch that cannot be observed to its own reconciliation. Such an error was
// once reported on the first claim of the batch, which was another tenant's
// (TestTheGrantsOfATenantHoldUpNoClaimOfItsBatch).
func (c *Controller) leaveOut(ctx context.Context, uid types.UID, err error) {
	klog.FromContext(ctx).Error(err, "Failed to observe a claim of a batch", "uid", uid)
	c.queue.Add(uid)
}

// recheckBlocked returns when a gated Job is looked at again that something keeps from being
// confirmed. A pod on a lost node may do so for an hour.
func (c *Controller) recheckBlocked(job *batchv1.Job) time.Duration {
	return min(max(c.clock.Since(job.CreationTimestamp.Time)/10, recheckMembers), 10*time.Second)
}

// cancel carries out a Cancel. If the run was gated, the next one of each of its claims is launched
// later each time: as long as a cache is behind, it would be launched and cancelled again and
// again.
func (c *Controller) cancel(ctx context.Context, o *observe.Observation, action decide.Cancel) (time.Duration, error) {
	if action.Run.State() == decide.RunGated {
		for _, uid := range action.Run.UIDs {
			c.hints.cancelled(types.UID(uid), c.clock.Now())
		}
	}
	result, err := c.actor.Do(ctx, o, action)
	c.hints.put(o.UID, result.Hint, c.clock.Now())
	return c.hints.recheck(o.UID, c.clock.Now(), result.RequeueAfter), err
}

// readinessOf observes one of the claims that a gated Job serves, live where the caches do not
// prove enough.
func (c *Controller) readinessOf(ctx context.Context, first *observe.Observation, uid types.UID, job string) (*observe.Observation, decide.Readiness, error) {
	if uid == first.UID {
		r, _ := decide.ReadinessOf(first.View, job)
		return first, r, nil
	}
	hint := c.hints.get(uid, c.clock.Now())
	o, err := c.observer.Observe(ctx, c.caches.Cached(), uid, hint)
	if err != nil {
		return nil, decide.Blocked, err
	}
	r, needsLive := decide.ReadinessOf(o.View, job)
	if r != decide.Ready || !needsLive {
		return o, r, nil
	}
	if o, err = c.observer.Observe(ctx, c.caches.Live(o.At, c.observer.Namespaces(o)...), uid, hint); err != nil {
		return nil, decide.Blocked, err
	}
	r, _ = decide.ReadinessOf(o.View, job)
	return o, r, nil
}

// record records what a run did, for all the claims that it served at once. That is done when the
// first of them is reconciled, so that no two write on one Job. One that cannot be observed is recorded
// later.
func (c *Controller) record(ctx context.Context, own act.Ended) (time.Duration, error) {
	run, all := own.Record.Run, []act.Ended{own}
	others := run.UIDs[1:]
	if !run.First {
		if runs.RecordOf(own.O.Jobs[run.Name], run.UIDs[0]).Recorded == nil {
			c.queue.Add(types.UID(run.UIDs[0]))
			return 0, nil
		}
		others = nil // the first one's is on record, so this one came late
	}
	for _, uid := range others {
		o, action, err := c.observeAndDecide(ctx, types.UID(uid), c.hints.get(types.UID(uid), c.clock.Now()))
		if err != nil {
			c.leaveOut(ctx, types.UID(uid), err)
			continue
		}
		if record, records := action.(decide.RecordOutcome); records && record.Run.Name == run.Name {
			all = append(all, act.Ended{O: o, Record: record})
		}
	}
	result, err := c.actor.RecordOutcomes(ctx, all...)
	for _, one := range all {
		c.hints.put(one.O.UID, one.Learned(result), c.clock.Now())
		if result.Hint != nil {
			c.queue.Add(one.O.UID) // what does not depend on it goes on
		}
	}
	return result.RequeueAfter, err
}
