package claim

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/run"
)

// What the loops of the Jobs and of the classes ask and say about a claim.

// Say returns what a claim says about a Job, by its name. A write that was refused is tried again
// later. Where the claim has something else to do, its own loop does that.
func (l *Loop) Say(ctx context.Context, uid types.UID, job string, look run.Look) (o *observe.Observation, action decide.Action, err error) {
	isEnough := map[run.Look]func(decide.Action) bool{run.Cached: always, run.AsOwn: isEnoughForClaim, run.Live: never}[look]
	about := func(v decide.View) decide.Action { return decide.ForJob(v, job) }
	err = l.Recovering(ctx, string(uid), func() (err error) {
		o, action, err = l.observeAndDecide(ctx, uid, l.hints.get(uid, l.Clock.Now()), about, isEnough)
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
		l.leaveToClaim(uid, action, look)
	}
	return o, action, nil
}

// leaveToClaim lets the loop of the claims do what is its to do. On what the caches showed it may
// have left it to the loop of the Jobs, and would again.
func (l *Loop) leaveToClaim(uid types.UID, action decide.Action, look run.Look) {
	_, reports := action.(decide.ReportProblem)
	switch {
	case look == run.Live && (reports || decide.IsWrite(action)):
		l.lookLive.Store(uid, nil)
	case !decide.IsWrite(action):
		return
	}
	l.Queue.Add(uid)
}

// confirmAgain is how soon a gated Job is judged again after a change of one of its claims. One
// whose PV changes all the time would keep the dispatcher at work otherwise.
const confirmAgain = 50 * time.Millisecond

// askRun enqueues the Job of a run about which a claim has something to say.
func (l *Loop) askRun(o *observe.Observation, action decide.Action) {
	key := cluster.KeyOf(o.Jobs[decide.RunOf(action)])
	if _, confirms := action.(decide.Confirm); confirms { // it was enqueued when its pod was created
		l.Runs.Queue.AddAfter(key, confirmAgain)
		return
	}
	l.Runs.Ask(key, o.UID)
}

// Enqueue lets a claim be reconciled.
func (l *Loop) Enqueue(uid types.UID) { l.Queue.Add(uid) }

// Learn keeps what a refused write has taught about a claim, or nil.
func (l *Loop) Learn(uid types.UID, hint *observe.Hint) {
	l.hints.put(uid, hint, l.Clock.Now())
}

// Cancelled notes that a gated run of a claim was cancelled.
func (l *Loop) Cancelled(uid types.UID) { l.hints.cancelled(uid, l.Clock.Now()) }

func decideWithSlot(v decide.View) decide.Action { return decide.Decide(v.WithSlot()) }

// decideOffered decides for a claim that is offered a slot what it has to do before it is launched:
// the loop of its class launches it.
func decideOffered(v decide.View) decide.Action {
	action := decideWithSlot(v)
	if _, launches := action.(decide.Launch); launches {
		return decide.Decide(v)
	}
	return action
}

// isEnoughForOffer reports whether what the caches show is enough for a claim that is offered a
// slot: what is not a launch is its own loop's, which looks again.
func isEnoughForOffer(action decide.Action) bool {
	_, launches := action.(decide.Launch)
	return !launches || decide.IsSafeOnStaleFacts(action)
}

// Offer returns what is decided for a claim that has a slot, by its own hints: one whose Job was
// just deleted again, or that is to pause, is in no other Job either.
func (l *Loop) Offer(ctx context.Context, uid types.UID) (o *observe.Observation, action decide.Action, err error) {
	err = l.Recovering(ctx, string(uid), func() (err error) {
		o, action, err = l.observeAndDecide(ctx, uid, l.hints.get(uid, l.Clock.Now()), decideWithSlot, isEnoughForOffer)
		return err
	})
	return o, action, err
}

// Decline does what Offer has returned for a claim that is not launched: its own loop does, or it
// pauses. One whose write was refused would wait for the next slot at once.
func (l *Loop) Decline(ctx context.Context, uid types.UID, o *observe.Observation, action decide.Action, err error) {
	_, launches := action.(decide.Launch)
	switch {
	case err != nil:
		l.lookLive.Store(uid, nil)
		l.retryLater(ctx, uid, err)
		return
	case o.View.IsRefused(action):
		l.Queue.AddAfter(uid, l.hints.recheck(uid, l.Clock.Now(), 0))
		return
	case !launches && decide.IsWrite(action):
		l.offered.Store(uid, nil)
	}
	l.Queue.Add(uid)
}

// Launched lets a claim be reconciled in case no cache ever shows its Job, or that existed already,
// without this claim.
func (l *Loop) Launched(uid types.UID) { l.Queue.AddAfter(uid, cluster.BehindFor) }

// Failed lets a claim be reconciled after a pause, for which no Job could be created.
func (l *Loop) Failed(ctx context.Context, uid types.UID, o *observe.Observation, err error) {
	l.retryLater(ctx, uid, err)
	if o != nil {
		l.reportRepeated(o, decide.Launch{}, err)
	}
}
