package slots

import (
	"cmp"
	"slices"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Flow is what takes turns: the claims of one namespace, and within it the runs of one verb, so that
// neither a burst of claims holds up deletes, nor the other way round.
type Flow struct {
	Namespace string
	Verb      contract.Verb
}

// Waiter is a UID that could be launched but for a slot.
type Waiter struct {
	Flow
	UID string
	// Since is when it was ready. A retry is ready when it is due, so that old failures do not push
	// new claims back for ever.
	Since time.Time
	// Limit is how many Jobs its config allows the class.
	Limit int
	// Group are those with whom it may share a Job; empty: nobody.
	Group string
}

// Load is what a class runs now, and when each flow was last served, as far as its Jobs still tell.
type Load struct {
	Running map[Flow]int
	Served  map[Flow]time.Time
}

// Busy is the number of slots in use.
func (l Load) Busy() int {
	n := 0
	for _, running := range l.Running {
		n += running
	}
	return n
}

// Queue is who waits for a slot of one class, each flow in order.
type Queue struct {
	flows map[Flow][]Waiter
	at    map[string]Waiter // by UID
}

// Add adds a waiter. One that waits already takes its new place.
func (l *Queue) Add(w Waiter) {
	l.Remove(w.UID)
	if l.at == nil {
		l.flows, l.at = map[Flow][]Waiter{}, map[string]Waiter{}
	}
	i, _ := slices.BinarySearchFunc(l.flows[w.Flow], w, compare)
	l.flows[w.Flow] = slices.Insert(l.flows[w.Flow], i, w)
	l.at[w.UID] = w
}

// Remove takes a waiter out, if it is there.
func (l *Queue) Remove(uid string) {
	w, waits := l.at[uid]
	if !waits {
		return
	}
	delete(l.at, uid)
	flow := l.flows[w.Flow]
	if len(flow) == 1 {
		delete(l.flows, w.Flow)
		return
	}
	i, _ := slices.BinarySearchFunc(flow, w, compare)
	l.flows[w.Flow] = slices.Delete(flow, i, i+1)
}

// Has tells whether a UID waits in it.
func (l *Queue) Has(uid string) bool {
	_, waits := l.at[uid]
	return waits
}

// Len is how many wait.
func (l *Queue) Len() int { return len(l.at) }

// Flows is how many wait in each flow.
func (l *Queue) Flows() map[Flow]int {
	out := map[Flow]int{}
	for flow, waiting := range l.flows {
		out[flow] = len(waiting)
	}
	return out
}

// Limit is how many Jobs the class may run: by the most generous config of those next in line, when a
// volume is deleted under an older one.
func (l *Queue) Limit() int {
	limit := 0
	for _, flow := range l.flows {
		limit = max(limit, flow[0].Limit)
	}
	return limit
}

// Next chooses who gets the free slots: of the namespace that runs least, or, where they run the same,
// was served longest ago; within it of the verb for which the same holds; of these the one that waits
// longest. The same line and load always give the same answer.
func (l *Queue) Next(load Load, free int) []Waiter {
	s := newStanding(load)
	var chosen []Waiter
	for range min(free, l.Len()) {
		var best *Waiter
		for flow, waiting := range l.flows {
			if n := s.chosen[flow]; n < len(waiting) && (best == nil || s.before(waiting[n], *best)) {
				best = &waiting[n]
			}
		}
		chosen = append(chosen, *best)
		s.choose(best.Flow)
	}
	return chosen
}

// Take chooses who of a group goes along with a Job that is about to start, in the order of Next, and takes
// them out of the line.
func (l *Queue) Take(group string, load Load, most int) []Waiter {
	var same Queue
	for _, flow := range l.flows {
		for _, w := range flow {
			if group != "" && w.Group == group {
				same.appendWaiter(w)
			}
		}
	}
	chosen := same.Next(load, most)
	for _, w := range chosen {
		l.Remove(w.UID)
	}
	return chosen
}

// add appends to a flow, in order.
func (l *Queue) appendWaiter(w Waiter) {
	if l.at == nil {
		l.flows, l.at = map[Flow][]Waiter{}, map[string]Waiter{}
	}
	l.flows[w.Flow] = append(l.flows[w.Flow], w)
	l.at[w.UID] = w
}

func compare(a, b Waiter) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.UID, b.UID)) }
