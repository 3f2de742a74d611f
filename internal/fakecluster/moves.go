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
// next, the next item that a process reconciles, and what is to be done by the rest of the cluster.
// Call it when every goroutine is blocked.
func (c *Cluster) Moves() []Move {
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
	for i := max(w.next, w.until); i < len(w.server.log); i++ {
		if c := w.server.log[i]; w.brings(c) {
			return c, true
		}
		w.until = i + 1
	}
	return Change{}, false
}

// brings reports whether a watch is about a change.
func (w *cursor) brings(c Change) bool {
	return c.Resource == w.resource && (w.namespace == "" || c.Namespace == w.namespace) && (w.selects(c.Old) || w.selects(c.Now))
}

// advance lets the watch bring the change that is pending.
func (w *cursor) advance() {
	if _, pending := w.pending(); !pending {
		return
	}
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.until = max(w.next, w.until) + 1
	notify(w.notified)
}
