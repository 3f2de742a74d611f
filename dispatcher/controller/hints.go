package controller

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
)

// hintFor is how long a hint is valid. A run that waits for its slot is observed several times. After that the write is
// tried again, in case the policy that refused it has changed.
const hintFor = time.Minute

// maxCancelPause is the longest pause after a run that was cancelled when it was to be confirmed.
const maxCancelPause = 5 * time.Minute

// hints holds what actions have learned for the next observations of a UID. Hints may be lost at any time.
type hints struct {
	mu    sync.Mutex
	byUID map[types.UID]hint
}

type hint struct {
	observe.Hint
	until time.Time
}

// put stores a hint, if there is one, and removes those of every UID that are too old.
func (h *hints) put(uid types.UID, learned *observe.Hint, now time.Time) {
	if learned == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byUID == nil {
		h.byUID = map[types.UID]hint{}
	}
	maps.DeleteFunc(h.byUID, func(_ types.UID, old hint) bool { return !now.Before(old.until) })
	h.byUID[uid] = hint{*learned, now.Add(hintFor)}
}

// cancelled notes that a run of a UID was cancelled when it was to be confirmed.
func (h *hints) cancelled(uid types.UID, now time.Time) {
	before := h.get(uid, now)
	before.Cancelled++
	pause := min(time.Second<<min(before.Cancelled-1, 8), maxCancelPause)
	before.NotBefore = now.Add(pause)
	h.put(uid, &before, now)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.byUID[uid] = hint{before, before.NotBefore.Add(hintFor)}
}

// get returns the hint for a UID, or an empty one.
func (h *hints) get(uid types.UID, now time.Time) observe.Hint {
	h.mu.Lock()
	defer h.mu.Unlock()
	if kept := h.byUID[uid]; now.Before(kept.until) {
		return kept.Hint
	}
	return observe.Hint{}
}
