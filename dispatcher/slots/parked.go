package slots

import (
	"iter"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// parked are the waiters that wait behind the probe, a Job with the same start that cannot start. When that has started,
// or has ended, they wait for slots again: first one of them, and twice as many each time that all have started. If all
// were launched at once, and there was room for one, all others would have to be cancelled.
type parked struct {
	waiting Queue
	// unparked are the last that left, by UID, and most is how many leave next.
	unparked []string
	most     int
}

// park parks a waiter that waits behind a Job that cannot start.
func (s *Slots) park(at ClassKey, w Waiter) {
	if s.parked[at] == nil {
		s.parked[at] = map[Start]*parked{}
	}
	p := s.parked[at][w.Start]
	if p == nil {
		p = &parked{}
		s.parked[at][w.Start] = p
	}
	p.most = 1
	p.waiting.Add(w)
}

// unpark adds waiters that were parked to the queue of their class, where no run with their start is still to start.
func (s *Slots) unpark(at ClassKey) {
	for _, start := range slices.SortedFunc(maps.Keys(s.parked[at]), Start.compare) {
		p := s.parked[at][start]
		if p.waiting.Len() > 0 && !s.isStarting(at, start, p) {
			s.unparkNext(at, p)
		}
		if p.waiting.Len() == 0 {
			delete(s.parked[at], start)
		}
	}
}

func (s *Slots) unparkNext(at ClassKey, p *parked) {
	p.unparked = nil
	for _, w := range p.waiting.Next(s.load(at), p.most, nil) {
		p.waiting.Remove(w.UID)
		s.queueOf(at).Add(w)
		p.unparked = append(p.unparked, w.UID)
	}
	p.most *= 2
}

// isStarting reports whether a run with a start is about to be launched, or has not started yet.
func (s *Slots) isStarting(at ClassKey, start Start, p *parked) bool {
	if slices.ContainsFunc(p.unparked, s.queueOf(at).Has) {
		return true
	}
	if hasStart(maps.Values(s.assigned), at, start) || hasStart(maps.Values(s.launched), at, start) {
		return true
	}
	return slices.ContainsFunc(s.caches.StartingLike(start.Revision, start.Nodes), func(job *batchv1.Job) bool {
		return KeyOfJob(job) == at && s.HoldsSlot(job) && !runs.HasStarted(s.caches.PodsOf(job))
	})
}

// hasStart reports whether an assignment is for a run with a start.
func hasStart(all iter.Seq[*Assignment], at ClassKey, start Start) bool {
	for a := range all {
		if a.ClassKey == at && a.start == start {
			return true
		}
	}
	return false
}

// isParked reports whether a UID is parked.
func (s *Slots) isParked(uid types.UID) bool {
	for _, starts := range s.parked {
		for _, p := range starts {
			if p.waiting.Has(string(uid)) {
				return true
			}
		}
	}
	return false
}
