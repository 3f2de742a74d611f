package slots

import (
	"cmp"
	"slices"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Flow is what shares slots fairly: the claims of one namespace and, within it, the runs of one verb. So neither a
// burst of claims holds up deletes, nor the other way round.
type Flow struct {
	Namespace string
	Verb      contract.Verb
}

// Waiter is a UID that could be launched if it had a slot.
type Waiter struct {
	Flow
	UID string
	// Since is when it was ready. A retry is ready when it is due, so that old failures do not push new claims back
	// for ever.
	Since time.Time
	// Limit is how many Jobs its config allows for the class.
	Limit int
	// Group names the waiters that may share a Job. It is empty if it shares none.
	Group string
	// Start is what its run would start with. Behind is set if another Job with the same cannot start, and its own
	// could not either.
	Start  Start
	Behind bool
}

// Start is what decides whether a run can start: its config revision, "namespace/name", and its nodes, as its Job names
// them.
type Start struct{ Revision, Nodes string }

// Load is what a class runs now, and when each flow was last served, as far as its Jobs still show it.
type Load struct {
	Running map[Flow]int
	Served  map[Flow]time.Time
}

// Busy returns the number of slots in use.
func (l Load) Busy() int {
	n := 0
	for _, running := range l.Running {
		n += running
	}
	return n
}

// Queue holds the waiters for a slot of one class, each flow in order.
type Queue struct {
	flows map[Flow][]*Waiter
	at    map[string]*Waiter // by UID
}

// Add adds a waiter. One that waits already is moved to its new place.
func (q *Queue) Add(w Waiter) {
	q.Remove(w.UID)
	if q.at == nil {
		q.flows, q.at = map[Flow][]*Waiter{}, map[string]*Waiter{}
	}
	i, _ := slices.BinarySearchFunc(q.flows[w.Flow], &w, compare)
	q.flows[w.Flow] = slices.Insert(q.flows[w.Flow], i, &w)
	q.at[w.UID] = &w
}

// Remove removes a waiter, if it is there.
func (q *Queue) Remove(uid string) {
	w, waits := q.at[uid]
	if !waits {
		return
	}
	delete(q.at, uid)
	flow := q.flows[w.Flow]
	if len(flow) == 1 {
		delete(q.flows, w.Flow)
		return
	}
	i, _ := slices.BinarySearchFunc(flow, w, compare)
	q.flows[w.Flow] = slices.Delete(flow, i, i+1)
}

// Has reports whether a UID waits.
func (q *Queue) Has(uid string) bool {
	_, waits := q.at[uid]
	return waits
}

// Len returns the number of waiters.
func (q *Queue) Len() int { return len(q.at) }

// Flows returns the number of waiters of each flow.
func (q *Queue) Flows() map[Flow]int {
	out := map[Flow]int{}
	for flow, waiting := range q.flows {
		out[flow] = len(waiting)
	}
	return out
}

// Limit returns how many Jobs the class may run: the highest limit among the next waiter of each flow. They may
// differ, since a volume may be deleted under an older config.
func (q *Queue) Limit() int {
	limit := 0
	for _, flow := range q.flows {
		limit = max(limit, flow[0].Limit)
	}
	return limit
}

// Next chooses the waiters that get the free slots. The namespace that runs least comes first or, of those that run
// the same, the one that was served longest ago. Within it the verb is chosen in the same way, and then the waiter
// that has waited longest. The same queue and load always give the same answer.
func (q *Queue) Next(load Load, free int) []Waiter {
	return q.choose(load, free, func(*Waiter) bool { return true })
}

// Take chooses the waiters of a group that share a Job that is about to start, in the order of Next, and removes them
// from the queue.
func (q *Queue) Take(group string, load Load, most int) []Waiter {
	if group == "" {
		return nil
	}
	chosen := q.choose(load, most, func(w *Waiter) bool { return w.Group == group })
	for _, w := range chosen {
		q.Remove(w.UID)
	}
	return chosen
}

// choose chooses at most so many waiters of those that fit.
func (q *Queue) choose(load Load, most int, fits func(*Waiter) bool) []Waiter {
	if most <= 0 {
		return nil
	}
	next, chosen := newTurns(load, q.flows, fits), []Waiter(nil)
	for len(chosen) < most {
		w := next.next()
		if w == nil {
			break
		}
		chosen = append(chosen, *w)
	}
	return chosen
}

func compare(a, b *Waiter) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.UID, b.UID)) }
