package slots

import (
	"cmp"
	"maps"
	"time"
)

// standing is how the flows compare while slots are assigned.
type standing struct {
	load    Load
	running map[string]int       // by namespace
	served  map[string]time.Time // by namespace
	chosen  map[Flow]int
	passed  map[Flow]int // waiters that were chosen, or whose group may get no more slots
	quotas  map[string]int
}

func newStanding(load Load, quotas map[string]int) standing {
	s := standing{
		load: load, running: map[string]int{}, served: map[string]time.Time{}, chosen: map[Flow]int{}, passed: map[Flow]int{}, quotas: maps.Clone(quotas),
	}
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

// firstOf returns the first waiter of a flow that may be chosen, or nil.
func (s standing) firstOf(flow Flow, waiting []Waiter) *Waiter {
	for i := s.passed[flow]; i < len(waiting); i++ {
		if quota, has := s.quotas[waiting[i].Group]; !has || quota > 0 {
			s.passed[flow] = i
			return &waiting[i]
		}
	}
	s.passed[flow] = len(waiting)
	return nil
}

// choose counts a slot that was assigned to the first waiter of a flow as a Job that runs there.
func (s standing) choose(w Waiter) {
	s.passed[w.Flow]++
	s.chosen[w.Flow]++
	s.running[w.Namespace]++
	if _, has := s.quotas[w.Group]; has {
		s.quotas[w.Group]--
	}
}

// before reports whether waiter a gets a slot before waiter b.
func (s standing) before(a, b Waiter) bool {
	return cmp.Or(
		cmp.Compare(s.running[a.Namespace], s.running[b.Namespace]),
		s.served[a.Namespace].Compare(s.served[b.Namespace]),
		cmp.Compare(s.load.Running[a.Flow]+s.chosen[a.Flow], s.load.Running[b.Flow]+s.chosen[b.Flow]),
		s.load.Served[a.Flow].Compare(s.load.Served[b.Flow]),
		compare(a, b),
	) < 0
}
