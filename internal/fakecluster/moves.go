package fakecluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Move is one thing that can happen next in a cluster that is stepped through.
type Move struct {
	Name string
	Do   func()
}

// Step makes the cluster one that is stepped through: nothing moves but by Moves, and time only when the test sleeps. It must be called before any process
// starts, and what a process runs must call Await before each item of a queue, and Pick which it is. pick returns one of n, from 0.
func (c *Cluster) Step(pick func(n int) int) { c.Server.stepped, c.pick = true, pick }

// Moves returns what can happen next, always in the same order: what a watch of a process brings next, the next item that a process reconciles, and what is
// to be done by the rest of the cluster. Call it when every goroutine is blocked.
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

// Await waits until a move lets an item of a queue be reconciled, or ctx ends. waiting returns how many items there are.
func (p *Process) Await(ctx context.Context, queue string, waiting func() int) {
	select {
	case <-p.waits.begin(queue, waiting):
	case <-ctx.Done():
	}
}

// Pick returns which of n items of a queue comes next.
func (p *Process) Pick(n int) int { return p.pick(n) }

// waits are the queues of which the next item is awaited, by name.
type waits struct {
	mu     sync.Mutex
	queues map[string]wait
}

type wait struct {
	waiting func() int
	over    chan struct{}
}

func (w *waits) begin(queue string, waiting func() int) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queues == nil {
		w.queues = map[string]wait{}
	}
	w.queues[queue] = wait{waiting, make(chan struct{})}
	return w.queues[queue].over
}

// ready returns the queues that have an item.
func (w *waits) ready() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.queues)), func(queue string) bool { return w.queues[queue].waiting() == 0 })
}

func (w *waits) end(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.queues[queue].over)
	delete(w.queues, queue)
}

// watchesOf returns the watches of a process, in an order that does not depend on which began first.
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
