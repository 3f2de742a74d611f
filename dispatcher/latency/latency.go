package latency

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/series"
)

// Kind is what the series distinguish runs by.
type Kind struct {
	Verb contract.Verb
	Undo bool
}

// keepFor is how long a step is kept at most. The Job may have been deleted before its pod was shown, and no event follows.
const keepFor = time.Hour

// Tracker keeps when each step that is the dispatcher's to take could begin. It holds the UIDs that are in the queue or are reconciled, and
// the steps of Jobs that exist.
type Tracker struct {
	clock  clock.PassiveClock
	series series.Series

	mu sync.Mutex
	// enqueued holds the UIDs that are to be reconciled, reconciled those that are, each with the time from which a launch counts.
	enqueued, reconciled map[types.UID]time.Time
	steps                map[step]progress
	swept                time.Time
}

// step is what follows from something that the caches show of a Job.
type step struct {
	phase string
	job   types.UID
}

// progress is since when a step could begin or, if it has ended, when that was.
type progress struct {
	at    time.Time
	ended bool
}

// New returns a Tracker that counts in the series.
func New(clk clock.PassiveClock, s series.Series) *Tracker {
	return &Tracker{
		clock: clk, series: s, swept: clk.Now(),
		enqueued: map[types.UID]time.Time{}, reconciled: map[types.UID]time.Time{}, steps: map[step]progress{},
	}
}

// Enqueued notes that an event or a slot has enqueued a UID. Until it is reconciled, the first one counts.
func (t *Tracker) Enqueued(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first(t.enqueued, uid, t.clock.Now())
}

// Begin notes that a UID is reconciled now.
func (t *Tracker) Begin(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first(t.enqueued, uid, t.clock.Now()) // a pause has ended, and no event has enqueued it
	t.reconciled[uid] = t.enqueued[uid]
	delete(t.enqueued, uid)
}

// Continue notes that a UID that is reconciled will be again because of what was just done, and waits for nothing else.
func (t *Tracker) Continue(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if since, known := t.reconciled[uid]; known {
		t.enqueued[uid] = since
	}
}

// End notes that a UID has been reconciled. Unless it continues, it waits for something that is not the dispatcher's.
func (t *Tracker) End(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.reconciled, uid)
}

// Launched counts a Job whose creation was answered, by the UID that was reconciled for it.
func (t *Tracker) Launched(uid types.UID, kind Kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if since, known := t.reconciled[uid]; known {
		delete(t.reconciled, uid)
		t.count(series.PhaseLaunch, kind, since)
	}
}

// ShowsGate notes that the caches show the pod of a Job with the dispatcher's gate alone.
func (t *Tracker) ShowsGate(job types.UID) { t.begin(step{series.PhaseConfirm, job}) }

// Confirmed counts a gate whose removal was answered.
func (t *Tracker) Confirmed(job types.UID, kind Kind) { t.end(step{series.PhaseConfirm, job}, kind) }

// ShowsEnd notes that the caches show a Job that is Complete or Failed, without an outcome.
func (t *Tracker) ShowsEnd(job types.UID) { t.begin(step{series.PhaseRecord, job}) }

// Recorded counts outcomes whose write was answered. Now the pod can be released.
func (t *Tracker) Recorded(job types.UID, kind Kind) {
	t.end(step{series.PhaseRecord, job}, kind)
	t.begin(step{series.PhaseRelease, job})
}

// Released counts a pod whose finalizer was removed.
func (t *Tracker) Released(job types.UID, kind Kind) { t.end(step{series.PhaseRelease, job}, kind) }

// Forget drops what was noted of a Job that no longer exists.
func (t *Tracker) Forget(job types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, phase := range []string{series.PhaseConfirm, series.PhaseRecord, series.PhaseRelease} {
		delete(t.steps, step{phase, job})
	}
}

// begin keeps the earliest time of a step. A handler is called after a reconcile that was faster, and with the state before a change, too.
func (t *Tracker) begin(s step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
	if _, known := t.steps[s]; !known {
		t.steps[s] = progress{at: t.clock.Now()}
	}
}

func (t *Tracker) end(s step, kind Kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, known := t.steps[s]; known && !p.ended {
		t.steps[s] = progress{at: t.clock.Now(), ended: true}
		t.count(s.phase, kind, p.at)
	}
}

func (t *Tracker) count(phase string, kind Kind, since time.Time) {
	t.series.ObserveOwn(phase, kind.Verb, kind.Undo, t.clock.Since(since))
}

// sweep drops the steps that no end came for.
func (t *Tracker) sweep() {
	now := t.clock.Now()
	if now.Sub(t.swept) < keepFor {
		return
	}
	t.swept = now
	for s, p := range t.steps {
		if now.Sub(p.at) >= keepFor {
			delete(t.steps, s)
		}
	}
}

// first keeps the earliest time of a UID.
func first(times map[types.UID]time.Time, uid types.UID, now time.Time) {
	if _, known := times[uid]; !known {
		times[uid] = now
	}
}
