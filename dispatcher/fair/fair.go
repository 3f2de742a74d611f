// Package fair says whose turn it is when a class may start another Job. It is pure: it knows who waits
// and what runs, and no clock.
package fair

import (
	"cmp"
	"slices"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Lane is what takes turns: the claims of one namespace, and within it the runs of one verb, so that
// neither a burst of claims holds up deletes, nor the other way round.
type Lane struct {
	Namespace string
	Verb      contract.Verb
}

// Waiter is a UID that could be launched but for a slot.
type Waiter struct {
	Lane
	UID string
	// Since is when it was ready. A retry is ready when it is due, so that old failures do not push
	// new claims back for ever.
	Since time.Time
	// Limit is how many Jobs its config allows the class.
	Limit int
	// Group are those with whom it may share a Job; empty: nobody.
	Group string
}

// Load is what a class runs now, and when each lane was last served, as far as its Jobs still tell.
type Load struct {
	Running map[Lane]int
	Served  map[Lane]time.Time
}

// Busy is the number of slots in use.
func (l Load) Busy() int {
	n := 0
	for _, running := range l.Running {
		n += running
	}
	return n
}

// Line is who waits for a slot of one class, each lane in order.
type Line struct {
	lanes map[Lane][]Waiter
	at    map[string]Waiter // by UID
}

// Join adds a waiter. One that waits already takes its new place.
func (l *Line) Join(w Waiter) {
	l.Leave(w.UID)
	if l.at == nil {
		l.lanes, l.at = map[Lane][]Waiter{}, map[string]Waiter{}
	}
	i, _ := slices.BinarySearchFunc(l.lanes[w.Lane], w, compare)
	l.lanes[w.Lane] = slices.Insert(l.lanes[w.Lane], i, w)
	l.at[w.UID] = w
}

// Leave takes a waiter out, if it is there.
func (l *Line) Leave(uid string) {
	w, waits := l.at[uid]
	if !waits {
		return
	}
	delete(l.at, uid)
	lane := l.lanes[w.Lane]
	if len(lane) == 1 {
		delete(l.lanes, w.Lane)
		return
	}
	i, _ := slices.BinarySearchFunc(lane, w, compare)
	l.lanes[w.Lane] = slices.Delete(lane, i, i+1)
}

// Has tells whether a UID waits in it.
func (l *Line) Has(uid string) bool {
	_, waits := l.at[uid]
	return waits
}

// Len is how many wait.
func (l *Line) Len() int { return len(l.at) }

// Lanes is how many wait in each lane.
func (l *Line) Lanes() map[Lane]int {
	out := map[Lane]int{}
	for lane, waiting := range l.lanes {
		out[lane] = len(waiting)
	}
	return out
}

// Limit is how many Jobs the class may run: by the most generous config of those next in line, when a
// volume is deleted under an older one.
func (l *Line) Limit() int {
	limit := 0
	for _, lane := range l.lanes {
		limit = max(limit, lane[0].Limit)
	}
	return limit
}

// Next chooses who gets the free slots: of the namespace that runs least, or, where they run the same,
// was served longest ago; within it of the verb for which the same holds; of these the one that waits
// longest. The same line and load always give the same answer.
func (l *Line) Next(load Load, free int) []Waiter {
	s := newStanding(load)
	var chosen []Waiter
	for range min(free, l.Len()) {
		var best *Waiter
		for lane, waiting := range l.lanes {
			if n := s.chosen[lane]; n < len(waiting) && (best == nil || s.before(waiting[n], *best)) {
				best = &waiting[n]
			}
		}
		chosen = append(chosen, *best)
		s.choose(best.Lane)
	}
	return chosen
}

// Take chooses who of a group goes along with a Job that is about to start, in the order of Next, and takes
// them out of the line.
func (l *Line) Take(group string, load Load, most int) []Waiter {
	var same Line
	for _, lane := range l.lanes {
		for _, w := range lane {
			if group != "" && w.Group == group {
				same.add(w)
			}
		}
	}
	chosen := same.Next(load, most)
	for _, w := range chosen {
		l.Leave(w.UID)
	}
	return chosen
}

// add appends to a lane, in order.
func (l *Line) add(w Waiter) {
	if l.at == nil {
		l.lanes, l.at = map[Lane][]Waiter{}, map[string]Waiter{}
	}
	l.lanes[w.Lane] = append(l.lanes[w.Lane], w)
	l.at[w.UID] = w
}

func compare(a, b Waiter) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.UID, b.UID)) }
