package claim

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/act"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/run"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/slots"
)

// Loop takes one step after the other for each claim.
type Loop struct {
	Caches   *cluster.Caches
	Written  *cluster.Written
	Observer *observe.Observer
	Actor    *act.Actor
	Slots    *slots.Slots
	Clock    clock.PassiveClock
	Runs     *run.Loop
	// Recovering does the work for a claim, and returns a panic as an error.
	Recovering func(ctx context.Context, item string, work func() error) error
	// Queue has the UIDs that are to be reconciled.
	Queue workqueue.TypedRateLimitingInterface[types.UID]

	hints hints
	// lookLive are the UIDs of the claims that are to be looked at on live facts next.
	lookLive sync.Map
	// offered are the UIDs of the claims that are offered a slot, and have something to write
	// before.
	offered sync.Map
}

// Reconcile takes one step for one UID. It returns when to take the next, zero for when something
// changes.
func (l *Loop) Reconcile(ctx context.Context, uid types.UID) (time.Duration, error) {
	defer l.Slots.FreedSoon(uid)
	isEnough, judge := isEnoughForClaim, decide.Decide
	if _, looksLive := l.lookLive.LoadAndDelete(uid); looksLive {
		isEnough = never
	}
	if _, isOffered := l.offered.LoadAndDelete(uid); isOffered {
		judge = decideOffered
	}
	o, action, err := l.observeAndDecide(ctx, uid, l.hints.get(uid, l.Clock.Now()), judge, isEnough)
	if err != nil {
		l.lookLive.Store(uid, nil) // what the caches show may be enough, and would only lead to the same look
		return 0, err
	}
	if _, awaits := action.(decide.AwaitSlot); !awaits {
		l.Slots.Leave(uid)
	}
	if o.View.IsRefused(action) {
		return l.hints.recheck(uid, l.Clock.Now(), 0), nil
	}
	after, err := l.carryOut(ctx, o, action)
	l.reportRepeated(o, action, err)
	return after, err
}

// HasProgressed reports whether a UID that was reconciled does not wait for a slot. An error of its
// launch, such as a refused Job, still counts for its next pause while it does.
func (l *Loop) HasProgressed(uid types.UID) bool { return !l.Slots.Awaits(uid) }

// carryOut carries out one action. It returns when to take the next step: at once if a refused
// write has taught something.
func (l *Loop) carryOut(ctx context.Context, o *observe.Observation, action decide.Action) (time.Duration, error) {
	if _, keeps := action.(decide.KeepVolume); keeps {
		for _, r := range o.View.RevokedDeletes() {
			l.Runs.Ask(cluster.KeyOf(o.Jobs[r.Name]), o.UID)
		}
	}
	if decide.IsOnJob(action) {
		l.askRun(o, action)
		if _, confirms := action.(decide.Confirm); !confirms {
			return cluster.BehindFor, nil // in case it has something else to do when it is asked
		}
		action = decide.Wait{Until: l.Clock.Now().Add(cluster.BehindFor), Why: "its Job is not confirmed yet"}
	}
	result, err := l.Actor.Do(ctx, o, action)
	l.slowReturns(o, action)
	if l.hints.put(o.UID, result.Hint, l.Clock.Now()); result.Hint != nil && err == nil {
		l.Queue.Add(o.UID)
	}
	return l.hints.recheck(o.UID, l.Clock.Now(), result.RequeueAfter), err
}

// retryLater lets a claim be reconciled after a pause, which doubles with each failure.
func (l *Loop) retryLater(ctx context.Context, uid types.UID, err error) {
	if !errors.Is(err, context.Canceled) {
		klog.FromContext(ctx).Error(err, "Failed to reconcile claim", "uid", uid)
	}
	l.Queue.AddRateLimited(uid)
}

// failuresReported is how many times in a row a UID has failed when that is reported, after some
// ten seconds.
const failuresReported = 8

// reportRepeated reports an error that comes again and again. A webhook that does not answer fails
// each write with what looks like a fault of the API server, and claims once waited for it without
// an event (TestAWriteWhoseWebhookDoesNotAnswerIsReported). A refused write is reported where it is
// refused.
func (l *Loop) reportRepeated(o *observe.Observation, action decide.Action, err error) {
	if err != nil && !patch.IsRefused(err) && !errors.Is(err, context.Canceled) && l.Queue.NumRequeues(o.UID) >= failuresReported {
		l.Actor.ReportFailed(o, decide.RunOf(action), err)
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
func (l *Loop) observeAndDecide(ctx context.Context, uid types.UID, hint observe.Hint, judge func(decide.View) decide.Action, isEnough func(decide.Action) bool) (*observe.Observation, decide.Action, error) {
	since := l.Written.Since(uid)
	if !since.IsZero() && l.Clock.Since(since) < cluster.BehindFor {
		return &observe.Observation{UID: uid}, decide.Wait{Until: since.Add(cluster.BehindFor), Why: "the caches do not show the last write"}, nil
	}
	o, err := l.Observer.Observe(ctx, l.Caches.Cached(), uid, hint)
	if err != nil {
		return nil, nil, err
	}
	if since.IsZero() {
		action := judge(o.View)
		if report := l.reportUnserved(o, action); report != nil {
			return o, *report, nil
		}
		if isEnough(action) {
			return o, action, nil
		}
	}
	if o, err = l.Observer.Observe(ctx, l.Caches.Live(o.At, l.Observer.Namespaces(o)...), uid, hint); err != nil {
		return nil, nil, err
	}
	return o, judge(o.View), nil
}

// reportUnserved returns the report that a namespace in which a UID may have Jobs is not served,
// instead of an action, or nil. What was decided may rest on Jobs there that the caches no longer
// show, and could often not be carried out.
func (l *Loop) reportUnserved(o *observe.Observation, action decide.Action) *decide.ReportProblem {
	switch action.(type) { //nolint:gochecksumtype // every other action is an act
	case decide.Wait, decide.ReportProblem:
		return nil
	}
	if p := l.Observer.Unserved(o); p != nil {
		return &decide.ReportProblem{Problem: *p}
	}
	return nil
}
