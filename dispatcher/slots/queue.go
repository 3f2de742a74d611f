package slots

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Flow is what shares slots fairly: the claims of one namespace and, within it, the runs of one
// verb. So neither a burst of claims holds up deletes, nor the other way round.
type Flow struct {
	Namespace string
	Verb      contract.Verb
}

// Waiter is a UID that could be launched if it had a slot.
type Waiter struct {
	Flow
	UID string
	// Since is when it was ready. A retry is ready when it is due, so that old failures do not push
	// new claims back for ever.
	Since time.Time
	// Limit is how many Jobs its config allows for the class.
	Limit int
	// Group names the waiters that may share a Job, at most Batch of them. It is empty if it shares
	// none.
	Group string
	Batch int
	// Start is what its run would start with. Behind is set if another Job with the same cannot
	// start, and its own could not either: of those behind one start one is chosen at a time.
	Start  Start
	Behind bool
	// Node is where its run was cancelled, if that had a node: what the kubelet there says counts
	// for it.
	Node string
}

// Start is what decides whether a run can start: its config revision, "namespace/name", and its
// nodes, as its Job names them.
type Start struct{ Revision, Nodes string }

// Load is what a class runs now, and when each flow was last served or was offered one that it did
// not use, as far as that is known.
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
	peers map[peers]counted
}

// peers are the waiters that have a quota in common: those of a group or, of those that wait behind
// a Job that cannot start, those with its start. A waiter without peers has no quota.
type peers struct {
	group  string
	behind Start
	node   string
}

func (w *Waiter) peers() peers {
	if w.Behind {
		return peers{behind: w.Start, node: w.Node}
	}
	return peers{group: w.Group}
}

// counted is how many peers wait, and how many of them can share a Job.
type counted struct{ waiting, batch int }

// Add adds a waiter. One that waits already is moved to its new place.
func (q *Queue) Add(w Waiter) {
	q.Remove(w.UID)
	if q.at == nil {
		q.flows, q.at, q.peers = map[Flow][]*Waiter{}, map[string]*Waiter{}, map[peers]counted{}
	}
	i, _ := slices.BinarySearchFunc(q.flows[w.Flow], &w, compare)
	q.flows[w.Flow] = slices.Insert(q.flows[w.Flow], i, &w)
	q.at[w.UID] = &w
	q.count(&w, 1)
}

// count counts a waiter among its peers, or no longer.
func (q *Queue) count(w *Waiter, n int) {
	of := w.peers()
	if of == (peers{}) {
		return
	}
	if n += q.peers[of].waiting; n > 0 {
		q.peers[of] = counted{n, max(w.Batch, 1)}
	} else {
		delete(q.peers, of)
	}
}

// Remove removes a waiter, if it is there.
func (q *Queue) Remove(uid string) {
	w, waits := q.at[uid]
	if !waits {
		return
	}
	delete(q.at, uid)
	q.count(w, -1)
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

// waits reports whether a UID of a flow waits. A queue of which there is none is empty.
func (q *Queue) waits(flow Flow) bool { return q != nil && len(q.flows[flow]) > 0 }

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

// Limit returns how many Jobs the class may run: the highest limit among the next waiter of each
// flow. They may differ, since a volume may be deleted under an older config.
func (q *Queue) Limit() int {
	limit := 0
	if q == nil {
		return limit
	}
	for _, flow := range q.flows {
		limit = max(limit, flow[0].Limit)
	}
	return limit
}

// Next chooses the waiters that get the free slots. The namespace that runs least comes first or,
// of those that run the same, the one that was served longest ago. Within it the verb is chosen in
// the same way, and then the waiter that has waited longest. Of peers that have a quota, no more
// are chosen. The same arguments always give the same answer.
func (q *Queue) Next(load Load, free int, quotas map[peers]int) []Waiter {
	if q.isHeld(quotas) {
		return nil
	}
	left := maps.Clone(quotas)
	return q.choose(load, free, func(w *Waiter) bool {
		quota, has := left[w.peers()]
		return !has || quota > 0
	}, func(w *Waiter) {
		if of := w.peers(); left[of] > 0 {
			left[of]--
		}
	})
}

// isHeld reports whether the quotas of all waiters are used up. A burst of one group is held at
// most times, and is not looked through.
func (q *Queue) isHeld(quotas map[peers]int) bool {
	held := 0
	for of, quota := range quotas {
		if quota == 0 {
			held += q.peers[of].waiting
		}
	}
	return held == q.Len()
}

// Take chooses the waiters of a group that share a Job that is about to start, in the order of
// Next, and removes them from the queue. Those behind a Job that cannot start are left, unless the
// first one of the Job was one of them.
func (q *Queue) Take(group string, behind bool, load Load, most int) []Waiter {
	if group == "" {
		return nil
	}
	chosen := q.choose(load, most, func(w *Waiter) bool { return w.Group == group && (behind || !w.Behind) }, func(*Waiter) {})
	for _, w := range chosen {
		q.Remove(w.UID)
	}
	return chosen
}

// choose chooses at most so many waiters of those that fit. One may no longer fit after onChosen.
func (q *Queue) choose(load Load, most int, fits func(*Waiter) bool, onChosen func(*Waiter)) []Waiter {
	all, chosen := candidatesOf(q.flows, load), []Waiter(nil)
	for len(chosen) < most {
		all = slices.DeleteFunc(all, func(t *candidate) bool {
			for len(t.waiting) > 0 && !fits(t.waiting[0]) {
				t.waiting = t.waiting[1:]
			}
			return len(t.waiting) == 0
		})
		if len(all) == 0 {
			break
		}
		next := slices.MinFunc(all, (*candidate).compare)
		w := next.waiting[0]
		next.waiting = next.waiting[1:]
		next.flow.running++
		next.namespace.running++
		chosen = append(chosen, *w)
		onChosen(w)
	}
	return chosen
}

// share is what a flow or a namespace has of the slots, and when it was last served.
type share struct {
	running int
	served  time.Time
}

func (s *share) compare(other *share) int {
	if c := cmp.Compare(s.running, other.running); c != 0 {
		return c
	}
	return s.served.Compare(other.served)
}

// candidate is a flow that has waiters, while slots are assigned. The flows of a namespace have its
// share in common.
type candidate struct {
	waiting   []*Waiter // the next one first
	flow      share
	namespace *share
}

// compare compares when the next waiters of two flows get a slot. Among many flows most comparisons
// end with the first one.
func (t *candidate) compare(other *candidate) int {
	if c := t.namespace.compare(other.namespace); c != 0 {
		return c
	}
	if c := t.flow.compare(&other.flow); c != 0 {
		return c
	}
	return compare(t.waiting[0], other.waiting[0])
}

// candidatesOf returns the flows that have waiters.
func candidatesOf(flows map[Flow][]*Waiter, load Load) []*candidate {
	namespaces := make(map[string]*share, len(load.Served))
	of := func(namespace string) *share {
		s := namespaces[namespace]
		if s == nil {
			s = &share{}
			namespaces[namespace] = s
		}
		return s
	}
	for flow, n := range load.Running {
		of(flow.Namespace).running += n
	}
	for flow, at := range load.Served {
		if s := of(flow.Namespace); at.After(s.served) {
			s.served = at
		}
	}
	out := make([]*candidate, 0, len(flows))
	for flow, waiting := range flows {
		out = append(out, &candidate{waiting, share{load.Running[flow], load.Served[flow]}, of(flow.Namespace)})
	}
	return out
}

func compare(a, b *Waiter) int {
	if c := a.Since.Compare(b.Since); c != 0 {
		return c
	}
	return cmp.Compare(a.UID, b.UID)
}
