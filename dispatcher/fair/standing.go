package fair

import (
	"cmp"
	"time"
)

// standing is how the lanes stand while slots are given out.
type standing struct {
	load    Load
	running map[string]int       // by namespace
	served  map[string]time.Time // by namespace
	chosen  map[Lane]int
}

func newStanding(load Load) standing {
	s := standing{load: load, running: map[string]int{}, served: map[string]time.Time{}, chosen: map[Lane]int{}}
	for lane, n := range load.Running {
		s.running[lane.Namespace] += n
	}
	for lane, at := range load.Served {
		if at.After(s.served[lane.Namespace]) {
			s.served[lane.Namespace] = at
		}
	}
	return s
}

// choose counts a slot that was given to a lane as a Job that runs there.
func (s standing) choose(lane Lane) {
	s.chosen[lane]++
	s.running[lane.Namespace]++
}

func (s standing) before(a, b Waiter) bool {
	return cmp.Or(
		cmp.Compare(s.running[a.Namespace], s.running[b.Namespace]),
		s.served[a.Namespace].Compare(s.served[b.Namespace]),
		cmp.Compare(s.load.Running[a.Lane]+s.chosen[a.Lane], s.load.Running[b.Lane]+s.chosen[b.Lane]),
		s.load.Served[a.Lane].Compare(s.load.Served[b.Lane]),
		compare(a, b),
	) < 0
}
