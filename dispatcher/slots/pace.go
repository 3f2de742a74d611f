package slots

import (
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// The pace is how long after a group was assigned a slot it gets another only for a Job that its
// waiters fill. Without it, claims that come a little more slowly than Jobs are launched get a Job
// each. Such a burst costs the API server and kube-controller-manager several times the work of one
// in which claims share Jobs, and that keeps it slow. A claim that comes alone does not wait. No
// user waits for a delete, so more of them share a Job.
const (
	pace       = 500 * time.Millisecond
	deletePace = 5 * pace
)

func paceOf(verb contract.Verb) time.Duration {
	if verb == contract.Delete {
		return deletePace
	}
	return pace
}

// groupKey is a group of a class.
type groupKey struct {
	ClassKey
	group string
}

// quotas returns how many slots may be assigned now to the peers of each kind that wait in a queue.
func (s *Slots) quotas(at ClassKey, queue *Queue) map[peers]int {
	out := map[peers]int{}
	for of, n := range queue.peers {
		switch {
		case of.group != "":
			out[of] = s.quotaOf(groupKey{at, of.group}, n)
		case s.isStarting(at, of):
			out[of] = 0
		default:
			out[of] = 1
		}
	}
	return out
}

// quotaOf returns how many slots a group may be assigned now: one for each Job that its waiters
// fill and, unless the group is paced, one for the others.
func (s *Slots) quotaOf(key groupKey, n counted) int {
	left := max(0, n.waiting-s.assignedTo(key)*(n.batch-1)) // the others share a Job that is about to be launched
	quota := left / n.batch
	if _, isPaced := s.paced[key]; left%n.batch > 0 && !isPaced {
		quota++
	}
	return quota
}

// assignedTo returns how many UIDs of a group have been assigned a slot and are not launched yet.
func (s *Slots) assignedTo(key groupKey) int {
	n := 0
	for _, a := range s.assigned {
		if a.ClassKey == key.ClassKey && a.group == key.group {
			n++
		}
	}
	return n
}

// paced says since when a group is paced, and when its newest waiter came since.
type paced struct{ since, newest time.Time }

// startPace paces the group of a waiter that is assigned a slot now.
func (s *Slots) startPace(at ClassKey, w Waiter) {
	key, now := groupKey{at, w.Group}, s.clock.Now()
	s.paced[key] = paced{since: now}
	s.clock.AfterFunc(paceOf(w.Verb), func() { s.endPace(key, func(p paced) bool { return p.since.Equal(now) }) })
}

// endPaceWhenQuiet ends a longer pace early if no other waiter of the group follows: the last ones
// of a burst of deletes would wait for nothing.
func (s *Slots) endPaceWhenQuiet(at ClassKey, w Waiter) {
	key := groupKey{at, w.Group}
	p, isPaced := s.paced[key]
	if !isPaced || paceOf(w.Verb) == pace {
		return
	}
	p.newest = s.clock.Now()
	s.paced[key] = p
	s.clock.AfterFunc(pace, func() { s.endPace(key, func(now paced) bool { return now == p }) })
}

// endPace assigns what a group has waited for since, unless it has been paced again meanwhile, or
// is not quiet.
func (s *Slots) endPace(key groupKey, isDue func(paced) bool) {
	s.mu.Lock()
	p, isPaced := s.paced[key]
	ended := isPaced && isDue(p)
	if ended {
		delete(s.paced, key)
	}
	s.mu.Unlock()
	if ended {
		s.Assign(key.ClassKey)
	}
}
