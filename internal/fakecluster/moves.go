package fakecluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Move is one thing that can happen next in a cluster that is stepped through.
type Move struct {
	Name string
	Do   func()
}

// Step makes the cluster one that is stepped through: nothing moves but by Moves, and time only
// when the test sleeps. It must be called before any process starts, and what a process runs must
// take what it reconciles from queues of NewQueue. pick returns one of n, from 0.
func (c *Cluster) Step(pick func(n int) int) { c.Server.stepped, c.pick = true, pick }

// Moves returns what can happen next, always in the same order: what a watch of a process brings
// next, a timer of a process that is due, the next item that a process reconciles, and what is to be
// done by the rest of the cluster. It waits until every goroutine is blocked: whether a process that
// was started a moment ago awaits an item yet would depend on the machine.
func (c *Cluster) Moves() []Move {
	c.await()
	var out []Move
	for _, p := range c.processes {
		out = append(out, p.moves()...)
	}
	for _, k := range c.working() {
		if !c.Frozen[k.Pod.Spec.NodeName] {
			out = append(out, k.moves()...)
		}
	}
	return append(out, Move{"PV controller", c.runPVController}, Move{"Job controller", c.runJobController}, Move{"kubelets", c.runKubelets})
}

func (p *Process) moves() []Move {
	var out []Move
	for _, w := range p.server.watchesOf(p) {
		if change, pending := w.pending(); pending {
			out = append(out, Move{fmt.Sprintf("dispatcher %d sees %s %s/%s", p.Number, change.Resource, change.Namespace, change.Name), w.advance})
		}
	}
	for _, fire := range p.timers.due() {
		out = append(out, Move{fmt.Sprintf("dispatcher %d has a timer that is due", p.Number), fire})
	}
	for _, queue := range p.waits.ready() {
		out = append(out, Move{fmt.Sprintf("dispatcher %d takes an item of %s", p.Number, queue), func() { p.waits.end(queue) }})
	}
	return out
}

// Processes returns the processes that run, the oldest first.
func (c *Cluster) Processes() []*Process { return slices.Clone(c.processes) }

// End stops a process and waits for its goroutines.
func (c *Cluster) End(p *Process) {
	p.stop()
	c.processes = slices.DeleteFunc(c.processes, func(other *Process) bool { return other == p })
	c.clock.Sleep(time.Second) // for the workqueues' own goroutines
}

// DieAfter kills the process after its next writes.
func (p *Process) DieAfter(writes int64) { p.lastWrite = p.writes.Load() + writes }

// IsDead reports whether the process was killed. It is to be ended.
func (p *Process) IsDead() bool { return p.killed() }

// watchesOf returns the watches of a process, in an order that does not depend on which began
// first.
func (s *Server) watchesOf(p *Process) []*cursor {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*cursor
	for w := range s.watches {
		if w.process == p {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b *cursor) int { return cmp.Compare(a.order, b.order) })
	return out
}

// pending returns the next change that the watch would bring.
func (w *cursor) pending() (Change, bool) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	if w.isDelayed() {
		return Change{}, false
	}
	if len(w.listed) > 0 {
		return w.listed[0], true
	}
	for ; w.next < len(w.server.log); w.next++ {
		if c := w.server.log[w.next]; w.brings(c) {
			return c, true
		}
	}
	return Change{}, false
}

// brings reports whether a watch is about a change.
func (w *cursor) brings(c Change) bool {
	return c.Resource == w.resource && (w.namespace == "" || c.Namespace == w.namespace) && (w.selects(c.Old) || w.selects(c.Now))
}

// advance lets the watch bring the change that is pending. Each of a list is a step, too: which of
// several a cache shows when the first is handled would depend on the machine.
func (w *cursor) advance() {
	change, pending := w.pending()
	if !pending {
		return
	}
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	if len(w.listed) > 0 {
		w.listed = w.listed[1:]
	} else {
		w.next++
	}
	w.ready = append(w.ready, change)
	notify(w.notified)
}
