package slots

import "time"

// countPause is for how long the Jobs of a class are not counted again after a UID was reconciled:
// what has ended is counted at once, by the event that says so. In a burst each UID is reconciled ten
// times, and each time all Jobs of the class were counted: half of the dispatcher's work.
const countPause = 100 * time.Millisecond

// counting says when the Jobs of a class were counted last, whether all slots were in use then, and
// whether the clock will have it done again.
type counting struct {
	last  time.Time
	full  bool
	isDue bool
}

// wasFull reports whether all slots of a class were in use when its Jobs were counted last.
func (s *Slots) wasFull(at ClassKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counted[at].full
}

// assignSoon assigns the free slots of a class, at once or when countPause is over.
func (s *Slots) assignSoon(at ClassKey) {
	if s.mustPause(at) {
		return
	}
	s.Assign(at)
}

// mustPause reports whether the Jobs of a class were counted a moment ago, and has them counted
// later.
func (s *Slots) mustPause(at ClassKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counted[at]
	left := countPause - s.clock.Since(c.last)
	if left <= 0 || c.isDue {
		return c.isDue
	}
	c.isDue = true
	s.counted[at] = c
	s.clock.AfterFunc(left, func() { go s.assignDue(at) }) // not by the clock, which may hold a lock
	return true
}

// assignDue assigns the free slots of a class when the pause is over.
func (s *Slots) assignDue(at ClassKey) {
	s.mu.Lock()
	s.counted[at] = counting{last: s.counted[at].last, full: s.counted[at].full}
	s.mu.Unlock()
	s.Assign(at)
}
