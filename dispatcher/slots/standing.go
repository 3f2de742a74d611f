package slots

import (
	"cmp"
	"time"
)

// standing is how the flows compare while slots are assigned.
type standing struct {
	load    Load
	running map[string]int       // by namespace
	served  map[string]time.Time // by namespace
	chosen  map[Flow]int
}

func newStanding(load Load) standing {
	s := standing{load: load, running: map[string]int{}, served: map[string]time.Time{}, chosen: map[Flow]int{}}
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

// choose counts a slot that was assigned to a flow as a Job that runs there.
func (s standing) choose(flow Flow) {
	s.chosen[flow]++
	s.running[flow.Namespace]++
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
