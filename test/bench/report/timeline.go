package report

import (
	"slices"
	"sync"
	"time"
)

// Timeline collects when each claim was asked for and when it was done. It may be used by several
// goroutines.
type Timeline struct {
	mu          sync.Mutex
	asked, done map[string]time.Time
	want        int
	complete    chan struct{}
}

// NewTimeline returns one for so many claims.
func NewTimeline(want int) *Timeline {
	return &Timeline{asked: map[string]time.Time{}, done: map[string]time.Time{}, want: want, complete: make(chan struct{})}
}

// Asked records when a claim was created or deleted.
func (t *Timeline) Asked(claim string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked[claim] = at
}

// Done records when a claim was done. Only the first time counts, and only of claims that were
// asked for.
func (t *Timeline) Done(claim string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, isAsked := t.asked[claim]
	_, isDone := t.done[claim]
	if !isAsked || isDone {
		return
	}
	t.done[claim] = at
	if len(t.done) == t.want {
		close(t.complete)
	}
}

// Complete is closed when all claims are done.
func (t *Timeline) Complete() <-chan struct{} { return t.complete }

// Left returns how many claims are not done.
func (t *Timeline) Left() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.want - len(t.done)
}

// Phase returns what was collected, without requests and processes.
func (t *Timeline) Phase() *Phase {
	t.mu.Lock()
	defer t.mu.Unlock()
	var start time.Time
	for _, at := range t.asked {
		if start.IsZero() || at.Before(start) {
			start = at
		}
	}
	p := &Phase{}
	for claim, at := range t.asked {
		p.Asked = append(p.Asked, at.Sub(start).Seconds())
		if done, isDone := t.done[claim]; isDone {
			p.Done = append(p.Done, done.Sub(start).Seconds())
			p.Took = append(p.Took, done.Sub(at).Seconds())
		}
	}
	slices.Sort(p.Asked)
	slices.Sort(p.Done)
	slices.Sort(p.Took)
	return p
}
