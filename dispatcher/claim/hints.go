package claim

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
)

// hintFor is how long a hint is valid. A run that waits for its slot is observed several times.
// After that the write is tried again, in case the policy that refused it has changed.
const hintFor = time.Minute

// hints holds what actions have learned for the next observations of a UID. Hints may be lost at
// any time.
type hints struct {
	mu     sync.Mutex
	byUID  map[types.UID][]hint
	pruned time.Time
}

type hint struct {
	observe.Hint
	until time.Time
}

// put stores a hint, if there is one, beside those that the UID has.
func (h *hints) put(uid types.UID, learned *observe.Hint, now time.Time) {
	if learned == nil {
		return
	}
	h.putUntil(uid, *learned, now, now.Add(hintFor))
}

func (h *hints) putUntil(uid types.UID, learned observe.Hint, now, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byUID == nil {
		h.byUID = map[types.UID][]hint{}
	}
	h.prune(now)
	h.byUID[uid] = append(validAt(h.byUID[uid], now), hint{learned, until})
}

// cancelled notes that a run of a UID was cancelled when it was to be confirmed.
func (h *hints) cancelled(uid types.UID, now time.Time) {
	count := h.get(uid, now).Cancelled + 1
	notBefore := now.Add(decide.Exponential(count))
	h.putUntil(uid, observe.Hint{Cancelled: count, NotBefore: notBefore}, now, notBefore.Add(hintFor))
}

// returned notes that a claim was returned to the scheduler from an excluded node.
func (h *hints) returned(uid types.UID, now time.Time) {
	count := h.get(uid, now).Returned + 1
	notBefore := now.Add(decide.Exponential(count))
	h.putUntil(uid, observe.Hint{Returned: count, NoReturnBefore: notBefore}, now, notBefore.Add(hintFor))
}

// slowReturns notes that a claim was returned to the scheduler from an excluded node. The scheduler
// does not know the config and may select that node again and again: each further return waits
// longer. A launch on another node does not.
func (l *Loop) slowReturns(o *observe.Observation, action decide.Action) {
	if _, ok := action.(decide.Reschedule); ok && o.View.Provision.ExcludedNode != "" {
		l.hints.returned(o.UID, l.Clock.Now())
	}
}

// prune removes the hints of every UID that are too old. It looks at all of them, so it does so
// only now and then.
func (h *hints) prune(now time.Time) {
	if now.Sub(h.pruned) < hintFor {
		return
	}
	h.pruned = now
	maps.DeleteFunc(h.byUID, func(_ types.UID, old []hint) bool { return len(validAt(old, now)) == 0 })
}

// validAt returns the hints that are not too old.
func validAt(all []hint, now time.Time) []hint {
	return slices.DeleteFunc(slices.Clone(all), func(old hint) bool { return !now.Before(old.until) })
}

// get returns what all hints for a UID say together, or an empty one.
func (h *hints) get(uid types.UID, now time.Time) observe.Hint {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out observe.Hint
	for _, kept := range validAt(h.byUID[uid], now) {
		out = out.Merge(kept.Hint)
	}
	return out
}

// recheck returns when to observe a UID again: after the given time, zero for when something
// changes, or when a refused write of its is to be tried again.
func (h *hints) recheck(uid types.UID, now time.Time, after time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, kept := range validAt(h.byUID[uid], now) {
		if left := kept.until.Sub(now); len(kept.Refused) > 0 && (after == 0 || left < after) {
			after = left
		}
	}
	return after
}
