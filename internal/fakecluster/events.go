package fakecluster

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
)

// Event is one event that a dispatcher emitted. Objects are written kind/name.
type Event struct {
	At                 time.Time
	About, Related     string
	Type, Reason, Note string

	by   *Process
	lost bool // it was emitted, and never written
}

// Recorder keeps the events of all dispatchers.
type Recorder struct {
	clock  clock.PassiveClock
	mu     sync.Mutex
	events []Event
}

// Eventf keeps one event.
//
//nolint:revive // client-go's own arguments
func (r *Recorder) Eventf(regarding, related runtime.Object, kind, reason, _, note string, args ...any) {
	r.keep(Event{About: nameOf(regarding), Related: nameOf(related), Type: kind, Reason: reason, Note: fmt.Sprintf(note, args...)})
}

func (r *Recorder) keep(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.At = r.clock.Now()
	e.lost = e.by.killed() && e.by.losesEvents
	r.events = append(r.events, e)
}

// lose loses what a process has emitted just now.
func (r *Recorder) lose(by *Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.events {
		if e := &r.events[i]; e.by == by && !r.clock.Now().After(e.At) {
			e.lost = true
		}
	}
}

// ofProcess records what one process emits.
type ofProcess struct {
	*Recorder
	process *Process
}

// Eventf keeps one event of the process.
//
//nolint:revive // client-go's own arguments
func (r ofProcess) Eventf(regarding, related runtime.Object, kind, reason, _, note string, args ...any) {
	r.keep(Event{About: nameOf(regarding), Related: nameOf(related), Type: kind, Reason: reason, Note: fmt.Sprintf(note, args...), by: r.process})
}

// About returns the events about an object with a reason, in order; an empty one: of any.
func (r *Recorder) About(object, reason string) []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Event
	for i := range r.events {
		if e := &r.events[i]; !e.lost && (object == "" || e.About == object) && (reason == "" || e.Reason == reason) {
			out = append(out, *e)
		}
	}
	return out
}

// Since returns the events from a number on, in order, also those that were lost.
func (r *Recorder) Since(n int) []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events[n:])
}

// nameOf is "PersistentVolumeClaim/data".
func nameOf(obj runtime.Object) string {
	o, ok := obj.(Object)
	if !ok {
		return ""
	}
	kind := fmt.Sprintf("%T", obj)
	return kind[strings.LastIndexByte(kind, '.')+1:] + "/" + o.GetName()
}
