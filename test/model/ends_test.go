package model

import (
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// The laws of the ends ask what follows without people and without failures.

// fairSteps are what Kubernetes and containers do by themselves when nothing fails, the first
// possible one first.
func fairSteps() []step {
	var out, last []step
	for _, s := range append(kubernetesSteps(), containerSteps()...) {
		if s.name == "a Job expires" {
			last = append(last, s)
			continue
		}
		out = append(out, s)
	}
	return append(out, last...)
}

// restWithin is after how many steps everything rests at the latest.
const restWithin = 200

// ends finds out how a state ends, once for all states on the way. Either the leader writes
// whenever it can, or Kubernetes and containers come first.
type ends struct {
	e           *explorer
	fair        []step
	leaderFirst bool
	helped      map[state]bool // whether an administrator can help with a rest
	known       map[state]end
}

func newEnds(e *explorer, leaderFirst bool) *ends {
	return &ends{e: e, fair: fairSteps(), leaderFirst: leaderFirst, known: map[state]end{}}
}

// end is how a state ends: what it breaks, if anything, and the reason of the event that says what
// an administrator has to do, if one does.
type end struct {
	broken
	told string
	rest state
}

// of returns how a state ends, and the steps there.
func (n *ends) of(s state) (found end, steps []string) {
	s.second, s.freezes, s.failures, s.acts, s.looked = second{}, 0, n.e.w.fails, n.e.w.most, false
	s.tidy()
	on := map[state]bool{}
	for {
		known, is := n.known[s]
		if is {
			found = known
			break
		}
		if on[s] || len(on) > restWithin {
			found = end{broken: broken{law: lawRest, why: "it goes round"}}
			break
		}
		on[s] = true
		after, how, last := n.step(s)
		if last != nil {
			found = *last
			break
		}
		s, steps = after, append(steps, how)
	}
	for s := range on {
		n.known[s] = found
	}
	return found, steps
}

// step returns the next state, or what the end breaks. Where the model ends nothing is known, so
// nothing is broken.
func (n *ends) step(s state) (after state, how string, last *end) {
	id := n.e.decide(&s, [kinds]uint32{}, [kinds]bool{})
	d := &n.e.decisions[id]
	if !n.leaderFirst {
		if after, how, moved := n.take(s, n.fair[:len(n.fair)-1]); moved {
			return after, how, nil
		}
	}
	if d.writes() {
		after, within := n.e.w.act(s, d)
		after.tidy()
		switch {
		case within && after != s:
			return after, "the leader: " + brief(d.action), nil
		case within:
			return s, "", &end{broken: broken{law: lawCycle, why: kind(d.action)}}
		}
	}
	if after, how, moved := n.take(s, n.fair); moved {
		return after, how, nil
	}
	if d.writes() {
		return s, "", &end{}
	}
	found := end{broken: n.e.w.rest(&s, d.action), rest: s}
	if p, told := d.action.(decide.ReportProblem); told {
		found.told = p.Problem.Reason
	}
	return s, "", &found
}

// take takes the first of the steps that is possible.
func (n *ends) take(s state, steps []step) (after state, how string, moved bool) {
	for _, step := range steps {
		step.take(&n.e.w, s, func(next state) {
			next.tidy()
			if !moved && next != s {
				after, how, moved = next, step.name, true
			}
		})
		if moved {
			return after, how, true
		}
	}
	return s, "", false
}

// whyStays is what is wrong when a volume stays in the storage.
const whyStays = "a volume stays, and nothing says why"

// rest returns what is wrong with a state in which nothing happens any more.
func (w *world) rest(s *state, last decide.Action) broken {
	if _, told := last.(decide.ReportProblem); told {
		return broken{}
	}
	for _, wrong := range []struct {
		is  bool
		why string
	}{
		{s.claim == claimPending, "a claim waits, and nothing says why"},
		{s.claim == claimBound && (!s.pv.exists() || s.storage == nothing), "a claim is bound to a volume that does not exist"},
		{s.claim == claimBound && s.pv.exists() && s.pv.finalizer == s.pv.retain && !s.pv.terminating, "the finalizer does not follow the policy"},
		{s.abandoned() && s.pv.exists() && s.pv.ref == refOwn && s.pv.finalizer, "our finalizer stays on the PV of a claim that is gone"},
		{s.abandoned() && s.storage != nothing && !s.accountedFor(), whyStays},
		{s.size.asked && s.claim == claimBound && !s.size.has && !s.size.infeasible, "a resize stays unfinished, and nothing says why"},
		{s.isAnyHeld(), "a record is held for nothing"},
		{s.isAny(func(j *job) bool { return j.kept && j.pod == podEnded }), "a pod that ended is kept for nothing"},
	} {
		if wrong.is {
			return broken{law: lawRest, why: wrong.why}
		}
	}
	return broken{}
}

func (s *state) abandoned() bool { return s.claim != claimPending && s.claim != claimBound }

func (s *state) isAnyHeld() bool { return s.isAny(func(j *job) bool { return j.held }) }

// accountedFor reports whether something stands for the volume in the storage.
func (s *state) accountedFor() bool {
	return s.storage == nothing || s.storage == adopted || s.isAnyHeld() || s.pv.exists() || s.rescue.phase != noPV || s.told || s.spared
}

// remedied returns what is wrong with an end that an event reports: nothing if an administrator can
// lead it to a good one, by one step or two.
func (n *ends) remedied(last end) broken {
	if n.helped == nil {
		n.helped = map[state]bool{}
	}
	is, known := n.helped[last.rest]
	if !known {
		is = n.isHelped(last.rest, 2)
		n.helped[last.rest] = is
	}
	if is {
		return broken{}
	}
	return broken{law: lawRest, why: "nothing that an administrator does helps: " + last.told}
}

func (n *ends) isHelped(rest state, within int) (helped bool) {
	w := n.e.w
	w.acts, w.most = allActs, rest.acts+1
	for _, step := range administratorSteps() {
		step.take(&w, rest, func(after state) {
			if helped {
				return
			}
			after.tidy()
			last, _ := n.of(after)
			helped = last.law == noLaw && (last.told == "" || within > 1 && last.rest != rest && n.isHelped(last.rest, within-1))
		})
	}
	return helped
}

// checkEnds adds what the ends of all states break that were reached.
func (e *explorer) checkEnds() {
	for _, leaderFirst := range []bool{true, false} {
		n := newEnds(e, leaderFirst)
		for at := range e.nodes {
			s := e.nodes[at].state
			if s.broken.law != noLaw {
				continue
			}
			last, steps := n.of(s)
			found := last.broken
			if found.law == noLaw && last.told != "" {
				found = n.remedied(last)
			}
			found.leaders, found.late = uint8(e.w.leaders), e.w.late && s.hasLatePod()
			if _, known := e.findings[found]; found.law != noLaw && !known {
				e.findings[found], e.after[found] = int32(at), steps
			}
		}
		e.rested += len(n.known)
	}
}
