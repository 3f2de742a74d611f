package slots

import (
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// The pace is how long after a UID of a group was offered a slot another is offered one only for a
// Job that its waiters fill. Without it, claims that come a little more slowly than Jobs are
// launched get a Job each. Such a burst costs the API server and kube-controller-manager several
// times the work of one in which claims share Jobs, and that keeps it slow. A claim that comes
// alone does not wait. No user waits for a delete, so more of them share a Job.
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

// quotas returns how many slots may be offered now to the peers of each kind that wait in a queue.
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

// quotaOf returns how many slots a group may use now: one for each Job that its waiters fill and,
// unless the group is paced, one for the others.
func (s *Slots) quotaOf(key groupKey, n counted) int {
	quota := n.waiting / n.batch
	if n.waiting%n.batch > 0 && !s.isPaced(key) {
		quota++
	}
	return quota
}

// paced says since when a group is paced and for how long, and when its newest waiter came since.
type paced struct {
	since, newest time.Time
	lasts         time.Duration
}

// ends returns when the pace ends. A longer one ends early if no other waiter of the group follows:
// the last ones of a burst of deletes would wait for nothing.
func (p paced) ends() time.Time {
	end := p.since.Add(p.lasts)
	if quiet := p.newest.Add(pace); !p.newest.IsZero() && quiet.Before(end) {
		return quiet
	}
	return end
}

func (s *Slots) isPaced(key groupKey) bool {
	p, found := s.paced[key]
	return found && s.clock.Now().Before(p.ends())
}

// noteNewest notes that another waiter of a group came while that is paced.
func (s *Slots) noteNewest(at ClassKey, w Waiter) {
	key := groupKey{at, w.Group}
	if p, is := s.paced[key]; is {
		p.newest = s.clock.Now()
		s.paced[key] = p
	}
}
