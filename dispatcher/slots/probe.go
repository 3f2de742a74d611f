package slots

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Waiters behind the probe, a Job with their start that cannot start, follow one by one: each when
// no run with that start is still to start. If all were launched at once, and there was room for
// one, all others would have to be cancelled.

// isStarting reports whether a run with the start of these peers is about to be launched, or has
// not started yet, as far as they believe it.
func (s *Slots) isStarting(at ClassKey, of peers) bool {
	start := of.behind
	if s.isOffered(at, start) {
		return true
	}
	stuck := s.caches.StuckLike(start.Revision, start.Nodes, s.clock.Now())
	return slices.ContainsFunc(s.caches.StartingLike(start.Revision, start.Nodes), func(job *batchv1.Job) bool {
		return KeyOfObject(job) == at && s.HoldsSlot(job) && !runs.HasStarted(s.caches.PodsOf(job)) && !stuck.IsDoubted(job.Name, of.node)
	})
}

// isOffered reports whether a slot is offered to a run with a start, or the cache does not have its
// Job yet.
func (s *Slots) isOffered(at ClassKey, start Start) bool {
	for _, t := range s.offers {
		if t.ClassKey == at && t.Start == start && !t.joins {
			return true
		}
	}
	for _, l := range s.launched {
		if l.ClassKey == at && l.start == start {
			return true
		}
	}
	return false
}
