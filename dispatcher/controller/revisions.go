package controller

import (
	"context"
	"time"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

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
