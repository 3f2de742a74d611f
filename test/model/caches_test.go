package model

// cacheOf is a kind of objects with a cache of its own. A cache may be behind the others of its
// leader, and never goes back.
type cacheOf uint8

const (
	ofClaims cacheOf = iota
	ofPVs
	ofJobs
	ofPods
	kinds
)

// shown returns what a cache of one kind holds of a state.
func (s *state) shown(k cacheOf) state {
	switch k {
	case ofClaims:
		return s.shownClaims()
	case ofPVs:
		return state{pv: s.pv, rescue: s.rescue, static: s.static, beside: s.beside}
	case ofJobs:
		return s.shownJobs()
	default:
		return s.shownPods()
	}
}

func (s *state) shownClaims() state {
	out := state{claim: s.claim, request: s.request, source: s.source, node: s.node, published: s.published, size: s.size, unasked: s.unasked}
	out.pv.ref = s.pv.ref // another claim is bound to it
	if i := s.find(provision, s.published/2); s.published != 0 && i >= 0 {
		j := &s.jobs[i]
		out.jobs[0] = job{verb: j.verb, number: j.number, recorded: j.recorded, mayRun: j.mayRun}
	}
	return out
}

func (s *state) shownJobs() state {
	var out state
	n := 0
	for i := range s.count() {
		j := s.jobs[i].visible()
		if j.orphan {
			continue
		}
		j.gated, j.deleting, j.forced, j.kept, j.end, j.nth = false, false, false, false, noEnd, 0
		switch {
		case j.pod == podNone:
		case j.pod == podWaiting, j.pod == podRunning, j.pod == podDone, s.jobs[i].vanished && j.cond == unfinished:
			j.pod = podRunning
		default:
			j.pod = podEnded
		}
		out.jobs[n] = j
		n++
	}
	return out
}

func (s *state) shownPods() state {
	var out state
	n := 0
	for i := range s.count() {
		j := &s.jobs[i]
		if j.pod == podNone || j.pod == podGone {
			continue
		}
		out.jobs[n] = j.identity()
		out.jobs[n].setPod(j)
		n++
	}
	return out
}

// identity returns what never changes about a Job.
func (j *job) identity() job {
	return job{verb: j.verb, number: j.number, after: j.after, gen: j.gen, rev: j.rev, hash: j.hash, node: j.node, source: j.source, clean: j.clean, birth: j.birth}
}

func (j *job) setPod(from *job) {
	j.pod, j.gated, j.end, j.deleting, j.forced, j.kept, j.late, j.nth = from.pod, from.gated, from.end, from.deleting, from.forced, from.kept, from.late, from.nth
}

// viewKey names what the caches of a leader show: a number for each kind, and config and nodes,
// which are never old.
type viewKey struct {
	of           [kinds]uint32
	config, kept uint8
	lost         bool
}

// view is what the caches of a leader, or the API server, show.
type view struct {
	of           [kinds]state
	config, kept uint8
	lost         bool
}

// merged returns a view as one state. It is what the writes are compared with that check what has
// changed.
func (v *view) merged() state {
	out := v.of[ofClaims]
	out.pv, out.rescue, out.static, out.jobs = v.of[ofPVs].pv, v.of[ofPVs].rescue, v.of[ofPVs].static, v.of[ofJobs].jobs
	out.beside = v.of[ofPVs].beside
	out.config, out.kept, out.lost = v.config, v.kept, v.lost
	for i := range out.count() {
		j := &out.jobs[i]
		if j.pod != podNone {
			j.pod = podGone
		}
		for k := range v.of[ofPods].count() {
			if p := &v.of[ofPods].jobs[k]; p.identity() == j.identity() {
				j.setPod(p)
			}
		}
	}
	return out
}

// number returns the number of what a cache shows.
func (e *explorer) number(shows state) uint32 {
	if id, known := e.numbers[shows]; known {
		return id
	}
	id := uint32(len(e.shows))
	e.shows = append(e.shows, shows)
	e.numbers[shows] = id
	return id
}

// keyOf returns what caches show that are not behind.
func (e *explorer) keyOf(s *state) viewKey {
	out := viewKey{config: s.config, kept: s.kept, lost: s.lost}
	for k := range kinds {
		out.of[k] = e.number(s.shown(k))
	}
	return out
}

func (e *explorer) viewOf(key viewKey) view {
	v := view{config: key.config, kept: key.kept, lost: key.lost}
	for k := range kinds {
		v.of[k] = e.shows[key.of[k]]
	}
	return v
}
