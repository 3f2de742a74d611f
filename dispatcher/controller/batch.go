package controller

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/act"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/slots"
)

// launch creates the Job of a run, and of other UIDs that wait and can share it. If the API server
// refuses the Job of all, or choosing the others panics, perhaps because of one request, the first
// UID is launched alone: a bad request must not keep the others from being launched.
func (c *Controller) launch(ctx context.Context, first act.Member) error {
	var members []act.Member
	err := c.recovering(ctx, string(first.O.UID), func() (err error) {
		members, err = c.chooseMembers(ctx, first)
		return err
	})
	if err != nil && !errors.Is(err, errPanic) {
		return err
	}
	if len(members) > 0 {
		err = c.actor.Launch(ctx, first, members...)
		if err == nil {
			for _, m := range members {
				c.slots.Dismiss(m.O.UID)
				c.queue.AddAfter(m.O.UID, cluster.BehindFor) // in case no cache ever shows the Job, or it existed already, without this claim
			}
			return nil
		}
		c.dismiss(members)
		if !patch.IsRefused(err) || patch.IsStripped(err) {
			return c.afterStripped(err, append(members, first)...)
		}
	}
	return c.afterStripped(c.actor.Launch(ctx, first), first)
}

// afterStripped reports a Job that was deleted again since it was not stored as it was created, and
// holds up the launches of its members. Otherwise creating and deleting the Job, which both enqueue
// them, would follow one another without a pause.
func (c *Controller) afterStripped(err error, members ...act.Member) error {
	if patch.IsStripped(err) {
		for _, m := range members {
			c.actor.ReportRefused(m.O, "", err)
			c.hints.put(m.O.UID, &observe.Hint{Refused: []string{decide.WriteOf(m.Launch)}}, c.clock.Now())
		}
	}
	return err
}

// chooseMembers returns the members that share the Job of a first UID: as many as fit.
func (c *Controller) chooseMembers(ctx context.Context, first act.Member) ([]act.Member, error) {
	all := c.joinWaiters(ctx, first)
	members, err := c.actor.Trim(first, all)
	if err != nil {
		c.dismiss(all)
		return nil, err
	}
	c.dismiss(all[len(members):])
	return members, nil
}

// joinWaiters returns the UIDs that wait for a slot for the same group and can share the Job. If
// the class has a free slot, no UID waits, so a batch forms only when slots are scarce.
func (c *Controller) joinWaiters(ctx context.Context, first act.Member) []act.Member {
	launch := first.Launch
	group := first.O.GroupOf(launch.Verb, launch.MayBatch)
	if group == "" {
		return nil
	}
	cfg := first.O.ConfigFor(launch.Verb).Config
	var out []act.Member
	for _, uid := range c.slots.Join(first.O.UID, slots.KeyOf(cfg.Source), group, cfg.BatchOf(launch.Verb)-1) {
		var m act.Member
		var ready bool
		err := c.recovering(ctx, string(uid), func() (err error) {
			m, ready, err = c.decideMember(ctx, uid, group, launch.AnyNode)
			return err
		})
		if err != nil {
			klog.FromContext(ctx).Error(err, "Failed to add a claim to a batch", "uid", uid)
		}
		if err != nil || !ready {
			c.slots.Dismiss(uid)
			c.queue.Add(uid)
			continue
		}
		out = append(out, m)
	}
	return out
}

// decideMember decides for a UID that has joined, as if it had a slot of its own, and by its own
// hints: a claim whose Job was just deleted again, or that is to pause, is in no other Job either.
// The UID shares the Job only if the decision is a launch of the same group. If an expand first has
// to be written on the claim's status, that is done here.
func (c *Controller) decideMember(ctx context.Context, uid types.UID, group string, anyNode bool) (m act.Member, ready bool, err error) {
	for range 2 {
		var action decide.Action
		hint := c.hints.get(uid, c.clock.Now())
		hint.Joined = true
		if m.O, action, err = c.observeAndDecide(ctx, uid, hint, decide.Decide, isEnoughForClaim); err != nil {
			return m, false, err
		}
		if m.O.View.IsRefused(action) {
			break
		}
		if launch, launches := action.(decide.Launch); launches {
			m.Launch = launch
			return m, launch.AnyNode == anyNode && m.O.GroupOf(launch.Verb, launch.MayBatch) == group, nil
		}
		if stage, sets := action.(decide.SetResizeStage); !sets || stage.To != decide.ResizeInProgress {
			break
		}
		var result act.Result
		if result, err = c.actor.Do(ctx, m.O, action); err != nil {
			break
		}
		c.hints.put(uid, result.Hint, c.clock.Now())
	}
	return m, false, err
}

// dismiss makes members that have joined and get no Job wait again.
func (c *Controller) dismiss(members []act.Member) {
	for _, m := range members {
		c.slots.Dismiss(m.O.UID)
		c.queue.Add(m.O.UID)
	}
}
