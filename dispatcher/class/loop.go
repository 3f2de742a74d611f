package class

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/act"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/slots"
)

// Claims is what the loop of the claims knows.
type Claims interface {
	// Offer returns what is decided for a claim that has a slot.
	Offer(ctx context.Context, uid types.UID) (*observe.Observation, decide.Action, error)
	// Decline leaves to a claim's own loop what Offer has returned, when the offer has ended: the
	// claim may wait for the next one then.
	Decline(ctx context.Context, uid types.UID, o *observe.Observation, action decide.Action, err error)
	// Enqueue lets a claim be reconciled.
	Enqueue(uid types.UID)
	// Launched lets a claim be reconciled that has a Job, in case no cache ever shows that.
	Launched(uid types.UID)
	// Failed lets a claim be reconciled after a pause, for which no Job could be created. Its
	// observation is nil if there is none.
	Failed(ctx context.Context, uid types.UID, o *observe.Observation, err error)
	// Learn keeps what a refused write has taught about a claim.
	Learn(uid types.UID, hint *observe.Hint)
}

// Loop creates the Jobs of each class.
type Loop struct {
	Slots  *slots.Slots
	Actor  *act.Actor
	Claims Claims
	// Recovering does the work for a claim, and returns a panic as an error.
	Recovering func(ctx context.Context, item string, work func() error) error
	// Workers is how many claims of a class are offered a slot in parallel: each may wait for the
	// API server, and for webhooks.
	Workers int
	// Queue has the classes in which a slot may be offered, by slots.ClassKey.
	Queue workqueue.TypedRateLimitingInterface[string]
}

// Enqueue has slots offered in a class after some time.
func (l *Loop) Enqueue(at slots.ClassKey, after time.Duration) { l.Queue.AddAfter(at.String(), after) }

// Reconcile offers the free slots of a class to the claims that are chosen. It returns when to do
// so again, zero for when something changes.
func (l *Loop) Reconcile(ctx context.Context, key string) (time.Duration, error) {
	at := slots.KeyNamed(key)
	uids := l.Slots.Begin(at)
	workqueue.ParallelizeUntil(ctx, l.Workers, len(uids), func(i int) {
		_ = l.Recovering(ctx, string(uids[i]), func() error { // the panic of a report is logged and counted
			l.serve(ctx, at, uids[i])
			return nil
		})
	})
	return l.Slots.Again(at), nil
}

// serve launches a claim that is offered a slot, and others with it. A panic concerns no other.
func (l *Loop) serve(ctx context.Context, at slots.ClassKey, uid types.UID) {
	var first act.Member
	err := l.Recovering(ctx, string(uid), func() (err error) {
		var launches bool
		if first, launches = l.offer(ctx, uid, func(m act.Member) bool { return classOf(m) == at }); launches {
			err = l.launch(ctx, first, l.others(ctx, first))
		}
		return err
	})
	if err != nil {
		l.Slots.End(uid)
		l.Claims.Failed(ctx, uid, first.O, err)
	}
}

// classOf returns the class whose slot a launch needs.
func classOf(m act.Member) slots.ClassKey {
	return slots.KeyOf(m.O.ConfigFor(m.Launch.Verb).Config.Source)
}

// offer offers a slot to a claim. It reports whether the claim is launched with it, or else ends
// its offer. One that waits for something that is over in a moment keeps it.
func (l *Loop) offer(ctx context.Context, uid types.UID, fits func(act.Member) bool) (act.Member, bool) {
	o, action, err := l.Claims.Offer(ctx, uid)
	if launch, launches := action.(decide.Launch); launches && err == nil && !o.View.IsRefused(action) {
		if m := (act.Member{O: o, Launch: launch}); fits(m) {
			return m, true
		}
	}
	if wait, waits := action.(decide.Wait); waits && err == nil {
		l.Slots.Keep(uid, wait.Until)
	} else {
		l.Slots.End(uid)
	}
	l.Claims.Decline(ctx, uid, o, action, err)
	return act.Member{}, false
}

// others returns the claims that share the Job of a first one. If the class has a free slot, no
// other waits, so a batch forms only when slots are scarce.
func (l *Loop) others(ctx context.Context, first act.Member) (out []act.Member) {
	verb, group := first.Launch.Verb, groupOf(first)
	if group == "" {
		return nil
	}
	most := first.O.ConfigFor(verb).Config.BatchOf(verb) - 1
	for _, uid := range l.Slots.Join(first.O.UID, group, most) {
		m, joins := l.offer(ctx, uid, func(m act.Member) bool { return m.Launch.AnyNode == first.Launch.AnyNode && groupOf(m) == group })
		if joins {
			out = append(out, m)
		}
	}
	return out
}

func groupOf(m act.Member) string { return m.O.GroupOf(m.Launch.Verb, m.Launch.MayBatch) }

// launch creates the Job of some claims, as many as fit. If the API server refuses it, or building
// it panics, perhaps because of one request, the first claim is launched alone: a bad request must
// not keep the others from being launched.
func (l *Loop) launch(ctx context.Context, first act.Member, others []act.Member) error {
	built := false
	err := l.Recovering(ctx, string(first.O.UID), func() error {
		fit, err := l.Actor.Trim(first, others)
		if err != nil {
			return err
		}
		l.putBack(others[len(fit):])
		others = fit // the rest may share another Job by now
		err = l.create(ctx, first, fit...)
		built = true
		return err
	})
	if err == nil || len(others) == 0 || patch.IsStripped(err) {
		return err
	}
	l.putBack(others)
	if built && !patch.IsRefused(err) {
		return err
	}
	return l.create(ctx, first)
}

// putBack lets claims wait as before, for which no Job was created.
func (l *Loop) putBack(others []act.Member) {
	for _, m := range others {
		l.Slots.Return(m.O.UID)
	}
}

// create creates a Job. One that is deleted again, since it was not stored as it was created, holds
// up the launches of its claims: otherwise creating and deleting it, which both enqueue them, would
// follow one another without a pause.
func (l *Loop) create(ctx context.Context, first act.Member, others ...act.Member) error {
	err := l.Actor.Launch(ctx, first, others...)
	for _, m := range append([]act.Member{first}, others...) {
		switch {
		case err == nil:
			l.Slots.Launched(m.O.UID)
			l.Claims.Launched(m.O.UID)
		case patch.IsStripped(err):
			l.Actor.ReportRefused(m.O, "", err)
			l.Claims.Learn(m.O.UID, &observe.Hint{Refused: []string{decide.WriteOf(m.Launch)}})
			l.Slots.End(m.O.UID)
			l.Claims.Enqueue(m.O.UID)
		}
	}
	return err
}
