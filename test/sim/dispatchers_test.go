package sim_test

import (
	"fmt"
	"slices"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// watched are the resources of which watches may lag.
var watched = []string{"persistentvolumeclaims", "persistentvolumes", "jobs", "pods", "configmaps", "controllerrevisions", "storageclasses", "nodes"}

var dispatcherPeople = []act{
	{"an administrator starts a dispatcher", func(w *world) string {
		if len(w.Processes()) > 1 || w.isLocked() {
			return ""
		}
		return fmt.Sprint("number ", w.Start().Number)
	}},
	{"an administrator stops a dispatcher", func(w *world) string {
		return ofDispatcher(w, func(p *fakecluster.Process) string { w.end(p); return fmt.Sprint("number ", p.Number) })
	}},
	{"an administrator rolls the dispatcher", func(w *world) string {
		old := w.Processes()
		if len(old) != 1 || w.isLocked() {
			return ""
		}
		number := w.Start().Number
		w.end(old[0])
		return fmt.Sprint("to number ", number)
	}},
}

var dispatcherFaults = []act{
	{"a dispatcher dies after a few writes", func(w *world) string {
		return ofDispatcher(w, func(p *fakecluster.Process) string {
			p.DieAfter(1 + w.rand.Int64N(4))
			return fmt.Sprint("number ", p.Number)
		})
	}},
	{"a dispatcher pauses before its next write", func(w *world) string { w.pauses++; return "one" }},
	{"a watch lags", func(w *world) string {
		return ofDispatcher(w, func(p *fakecluster.Process) string {
			resource := pickOne(w, watched)
			p.DelayWatches(resource, true)
			return resource
		})
	}},
	{"a watch ends, and lists", func(w *world) string {
		return ofDispatcher(w, func(p *fakecluster.Process) string {
			resource := pickOne(w, watched)
			p.Relist(resource)
			return resource
		})
	}},
	{"watches catch up", func(w *world) string {
		return ofDispatcher(w, catchUp)
	}},
}

// catchUp lets the watches of a dispatcher bring what they have not brought yet.
func catchUp(p *fakecluster.Process) string {
	for _, resource := range watched {
		p.DelayWatches(resource, false)
	}
	return "all"
}

func pickOne[T any](w *world, of []T) T { return of[w.rand.IntN(len(of))] }

// ofDispatcher lets something be done with one of the dispatchers that run.
func ofDispatcher(w *world, do func(*fakecluster.Process) string) string {
	all := w.Processes()
	if len(all) == 0 {
		return ""
	}
	return do(pickOne(w, all))
}

// beforeWrite holds a dispatcher up between its last look and its write, if one is to pause.
func (w *world) beforeWrite() {
	if w.pauses == 0 {
		return
	}
	w.pauses--
	over := make(chan struct{})
	w.paused = append(w.paused, over)
	<-over
}

// goingOn are the dispatchers that pause, each of which may go on.
func (w *world) goingOn() []fakecluster.Move {
	var out []fakecluster.Move
	for i, over := range w.paused {
		out = append(out, fakecluster.Move{Name: "dispatcher goes on with its write", Do: func() {
			close(over)
			w.paused = slices.Delete(slices.Clone(w.paused), i, i+1)
		}})
	}
	return out
}

// moves is all that can happen next.
func (w *world) moves() []fakecluster.Move { return append(w.Moves(), w.goingOn()...) }

// end ends a dispatcher. One that pauses goes on before, as a leader whose lease another has taken
// meanwhile.
func (w *world) end(p *fakecluster.Process) {
	w.goOn()
	w.End(p)
}

// goOn lets every dispatcher that pauses go on.
func (w *world) goOn() {
	w.pauses = 0
	for len(w.paused) > 0 {
		w.do("a dispatcher goes on", w.goingOn()[0].Do)
	}
}
