package controller

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// processNextRevision reconciles the next config revision of its queue. It returns false when the
// queue is shut down.
func (c *Controller) processNextRevision(ctx context.Context) bool {
	name, quit := c.revisions.Get()
	if quit {
		return false
	}
	defer c.revisions.Done(name)
	var requeueAfter time.Duration
	err := c.recovering(ctx, name, func() (err error) {
		requeueAfter, err = c.reconcileRevision(ctx, name)
		return err
	})
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			klog.FromContext(ctx).Error(err, "Failed to reconcile config revision", "revision", name)
		}
		c.revisions.AddRateLimited(name)
		return true
	}
	c.revisions.Forget(name)
	if requeueAfter > 0 {
		c.revisions.AddAfter(name, requeueAfter)
	}
	return true
}

// reconcileRevision takes one step for one revision, "namespace/name". A decision to mark or delete
// it is taken a second time, on live facts. It returns when to take the next step, as reconcile
// does.
func (c *Controller) reconcileRevision(ctx context.Context, name string) (time.Duration, error) {
	for _, live := range []bool{false, true} {
		r, err := c.observer.ObserveRevision(ctx, name, live)
		if r == nil || err != nil {
			return 0, err
		}
		action, until := decide.DecideRevision(r.Revision, c.clock.Now())
		if certain := action != decide.MarkUnused && action != decide.DeleteUnused; certain || live {
			result, err := c.actor.DoRevision(ctx, r, action, until)
			return result.RequeueAfter, err
		}
	}
	return 0, nil
}
