package fakecluster

import (
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// steppedClock is the clock of a process in a cluster that is stepped through. What it is to call
// after a time is called by a move: which of two functions that are due at the same time runs first
// would depend on the machine.
type steppedClock struct {
	clock.WithTickerAndDelayedExecution
	timers *timers
}

// AfterFunc has f called by a move when the time has come.
func (c steppedClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return c.WithTickerAndDelayedExecution.AfterFunc(d, c.timers.add(f))
}

// timers are the functions that a process wants to be called after a time, in the order in which it
// has asked for them.
type timers struct {
	mu  sync.Mutex
	all []*timer
}

type timer struct {
	call  func()
	isDue bool
}

// add adds a function. It returns what says that its time has come.
func (t *timers) add(call func()) (ring func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := &timer{call: call}
	t.all = append(t.all, one)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		one.isDue = true
	}
}

// due returns what calls each function whose time has come.
func (t *timers) due() []func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []func()
	for _, one := range t.all {
		if one.isDue {
			out = append(out, func() { t.fire(one) })
		}
	}
	return out
}

func (t *timers) fire(one *timer) {
	t.mu.Lock()
	t.all = slices.DeleteFunc(t.all, func(other *timer) bool { return other == one })
	t.mu.Unlock()
	one.call()
}
