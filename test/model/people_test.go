package model

import (
	"slices"
	"strings"
)

// acts is a set of groups of people's acts.
type acts uint16

const (
	rescues  acts = 1 << iota // what an administrator does with PVs
	changes                   // of the request and the config
	disturbs                  // deletions of Jobs and pods
	offersPV                  // of a PV that fits the claim
	strips                    // finalizers, of what is then deleted by force
	byHand                    // a PV without marks, under the right name
	clones                    // of another claim, asked for or replaced while the claim waits
	names                     // the PV, in the claim
	trashes                   // of volumes that wait for their delete
	allActs  = rescues | changes | disturbs
)

// peopleSteps are what users and administrators do.
func peopleSteps() []step { return slices.Concat(usualSteps(), trashSteps(), hardSteps()) }

// usualSteps are what most users and administrators do.
func usualSteps() []step {
	return []step{
		once("the user deletes the claim", func(_ *world, s *state) bool { return s.claim != claimGone }, func(_ *world, s *state) {
			s.claim, s.request, s.source, s.node, s.published, s.size, s.unasked = claimGone, 0, 0, 0, 0, size{}, false
		}),
		once("the user asks for more", func(w *world, s *state) bool { return w.grows && s.claim == claimBound && !s.size.asked },
			func(_ *world, s *state) {
				s.size.asked = true
				s.touchClaim()
			}),
		act(changes, "the user changes the request", func(_ *world, s *state) bool { return s.claim == claimPending && s.request == 0 },
			func(_ *world, s *state) {
				s.request = 1
				s.touchClaim()
			}),
		act(rescues, "the administrator sets Retain", func(_ *world, s *state) bool { return s.pv.exists() && !s.pv.retain },
			func(_ *world, s *state) { s.pv.retain = true }),
		act(rescues, "the administrator sets Delete", func(_ *world, s *state) bool { return s.pv.exists() && s.pv.retain },
			func(_ *world, s *state) { s.pv.retain = false }),
		act(rescues, "the administrator hands the PV on", func(_ *world, s *state) bool {
			return s.pv.phase == released && !s.pv.terminating && s.pv.ref == refOwn
		}, func(_ *world, s *state) { s.pv.phase, s.pv.ref = bound, refOther }),
		act(rescues, "the administrator takes off the claimRef", func(_ *world, s *state) bool {
			return s.pv.phase == released && !s.pv.terminating && s.pv.ref == refOwn
		}, func(_ *world, s *state) { s.pv.phase, s.pv.ref = unbound, refNone }),
		act(rescues, "the administrator deletes the PV", func(_ *world, s *state) bool { return s.pv.exists() && !s.pv.terminating },
			func(_ *world, s *state) { s.pv.terminating = true }),
		act(rescues, "the administrator writes the UID's PV by hand", func(_ *world, s *state) bool {
			return !s.pv.exists() && s.storage != nothing && s.claim == claimPending
		}, func(w *world, s *state) { w.writePV(s, s.config) }),
		act(rescues, "the administrator writes a PV of another name", func(_ *world, s *state) bool {
			return !s.pv.exists() && s.rescue.phase == noPV && s.storage != nothing && s.claim == claimPending
		}, func(_ *world, s *state) { s.rescue.phase = unbound }),
		once("the administrator deletes the rescued PV", func(_ *world, s *state) bool { return s.rescue.phase == released },
			func(_ *world, s *state) { s.rescue.phase = noPV }),
		act(offersPV, "the administrator makes an old PV available", func(_ *world, s *state) bool { return s.static == noPV && s.claim == claimPending },
			func(_ *world, s *state) { s.static = unbound }),
		act(changes, "the administrator changes the config", func(_ *world, s *state) bool { return s.config == 0 },
			func(_ *world, s *state) { s.config = 1 }),
		act(disturbs, "the node is lost", func(w *world, s *state) bool { return w.forgets && !s.lost && !s.onNode() },
			func(_ *world, s *state) { s.lost = true }),
		act(disturbs, "a node that has lost what it knew runs a container again", func(_ *world, s *state) bool { return s.isAny(isRunAnew) },
			func(_ *world, s *state) { s.runAnew() }),
		actOnEach(disturbs, "the administrator deletes a Job", func(j *job) bool { return !j.terminating && !j.orphan }, func(j *job) { j.delete(true) }),
		actOnEach(disturbs, "the administrator deletes a pod by force", func(j *job) bool {
			return (j.pod == podWaiting || j.pod == podRunning || j.pod == podDone) && !j.forced
		}, func(j *job) { j.deleting, j.forced = true, !j.gated }),
	}
}

// isRunAnew reports whether a node that starts without what it knew runs a container again: the pod
// has not ended, and is not deleted.
func isRunAnew(j *job) bool { return j.pod == podDone && !j.deleting && !j.forced }

// runAnew begins the first container that is run again.
func (s *state) runAnew() {
	for i := range s.count() {
		if j := &s.jobs[i]; isRunAnew(j) {
			j.pod, j.end = podRunning, noEnd
			s.begins(i)
			return
		}
	}
}

// onNode reports whether a pod may be at work, on whichever node.
func (s *state) onNode() bool {
	for i := range s.count() {
		if j := &s.jobs[i]; j.runs() || j.pod == podRunning || j.pod == podDone || j.pod == podWaiting && !j.gated {
			return true
		}
	}
	return false
}

// administratorSteps are what an administrator does about an event, and not the user.
func administratorSteps() []step {
	steps := slices.DeleteFunc(peopleSteps(), func(s step) bool { return strings.HasPrefix(s.name, "the user") })
	return append(steps, act(allActs, "the administrator adds the marks to a PV that was written without", func(_ *world, s *state) bool {
		return s.pv.bare && !s.pv.terminating
	}, func(_ *world, s *state) { s.pv.bare = false }), actOnEach(rescues, "the administrator gives a record up", func(j *job) bool { return j.held && !j.orphan },
		func(j *job) { j.forget = true }))
}

// act returns a step that counts as an act of people.
func act(of acts, name string, may func(w *world, s *state) bool, change func(w *world, s *state)) step {
	return once(name, func(w *world, s *state) bool { return w.acts&of != 0 && s.acts < w.most && may(w, s) }, func(w *world, s *state) {
		s.acts++
		change(w, s)
	})
}

// actOnEach returns a step that may happen to each Job and counts as an act of people.
func actOnEach(of acts, name string, may func(j *job) bool, change func(j *job)) step {
	return step{name, func(w *world, s state, next func(state)) {
		if w.acts&of == 0 || s.acts == w.most {
			return
		}
		s.acts++
		onJobs(name, func(_ *state, j *job) bool { return may(j) }, func(_ *world, s *state, i int) { change(&s.jobs[i]) }).take(w, s, next)
	}}
}
