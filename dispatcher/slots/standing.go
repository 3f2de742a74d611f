package slots

import (
	"cmp"
	"container/heap"
	"time"
)

// standing is how the flows compare while slots are assigned.
type standing struct {
	load    Load
	running map[string]int       // by namespace
	served  map[string]time.Time // by namespace
	chosen  map[Flow]int
}

func newStanding(load Load) standing {
	s := standing{load: load, running: map[string]int{}, served: make(map[string]time.Time, len(load.Served)), chosen: map[Flow]int{}}
	for flow, n := range load.Running {
		s.running[flow.Namespace] += n
	}
	for flow, at := range load.Served {
		if at.After(s.served[flow.Namespace]) {
			s.served[flow.Namespace] = at
		}
	}
	return s
}

// choose counts a slot that was assigned to a flow as a Job that runs there.
func (s standing) choose(flow Flow) {
	s.chosen[flow]++
	s.running[flow.Namespace]++
}

// turn is when a flow is next: the more that runs there, and the later it was served, the later.
type turn struct {
	waiting                 []*Waiter // the next one first
	namespaceRuns, runs     int
	namespaceServed, served time.Time
}

// before reports whether the next waiter of a flow gets a slot before that of another.
func (t *turn) before(other *turn) bool {
	return cmp.Or(
		cmp.Compare(t.namespaceRuns, other.namespaceRuns),
		t.namespaceServed.Compare(other.namespaceServed),
		cmp.Compare(t.runs, other.runs),
		t.served.Compare(other.served),
		compare(t.waiting[0], other.waiting[0]),
	) < 0
}

// turns is a heap of the flows that have waiters, so that a slot does not cost a comparison with each of a thousand namespaces.
type turns struct {
	standing
	fits  func(*Waiter) bool
	flows []turn
}

// newTurns returns the flows in which a waiter fits. The others are not chosen.
func newTurns(load Load, flows map[Flow][]*Waiter, fits func(*Waiter) bool) *turns {
	t := &turns{newStanding(load), fits, make([]turn, 0, len(flows))}
	for _, waiting := range flows {
		if one := (turn{waiting: waiting}); t.update(&one) {
			t.flows = append(t.flows, one)
		}
	}
	heap.Init(t)
	return t
}

// update makes a flow stand as it stands now, with its next waiter that fits. It reports whether there is one.
func (t *turns) update(one *turn) bool {
	for len(one.waiting) > 0 && !t.fits(one.waiting[0]) {
		one.waiting = one.waiting[1:]
	}
	if len(one.waiting) == 0 {
		return false
	}
	flow := one.waiting[0].Flow
	one.namespaceRuns, one.namespaceServed = t.running[flow.Namespace], t.served[flow.Namespace]
	one.runs, one.served = t.load.Running[flow]+t.chosen[flow], t.load.Served[flow]
	return true
}

// next chooses a waiter, nil if there is none. A flow that was compared before its namespace got a slot, or its group its last, is compared again
// when it is first: it can only have moved back.
func (t *turns) next() *Waiter {
	for len(t.flows) > 0 {
		first := &t.flows[0]
		w := first.waiting[0]
		isNow := first.namespaceRuns == t.running[w.Namespace] && t.fits(w)
		if isNow {
			t.choose(w.Flow)
			first.waiting = first.waiting[1:]
		}
		if t.update(first) {
			heap.Fix(t, 0)
		} else {
			heap.Pop(t)
		}
		if isNow {
			return w
		}
	}
	return nil
}

// Len, Less, Swap, Push and Pop are what container/heap needs.
func (t *turns) Len() int           { return len(t.flows) }
func (t *turns) Less(i, j int) bool { return t.flows[i].before(&t.flows[j]) }
func (t *turns) Swap(i, j int)      { t.flows[i], t.flows[j] = t.flows[j], t.flows[i] }
func (t *turns) Push(x any)         { t.flows = append(t.flows, x.(turn)) }

// Pop removes the last one.
func (t *turns) Pop() any {
	last := len(t.flows) - 1
	out := t.flows[last]
	t.flows = t.flows[:last]
	return out
}
