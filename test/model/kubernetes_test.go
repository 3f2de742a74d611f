package model

import "slices"

// step is one thing that can happen. It calls next with each state that may follow.
type step struct {
	name string
	take func(w *world, s state, next func(state))
}

// onJobs returns a step that may happen to each Job.
func onJobs(name string, may func(s *state, j *job) bool, change func(w *world, s *state, i int)) step {
	return step{name, func(w *world, s state, next func(state)) {
		for i := range s.count() {
			if may(&s, &s.jobs[i]) {
				after := s
				change(w, &after, i)
				next(after)
			}
		}
	}}
}

// once returns a step that may happen to the state as a whole.
func once(name string, may func(w *world, s *state) bool, change func(w *world, s *state)) step {
	return step{name, func(w *world, s state, next func(state)) {
		if may(w, &s) {
			change(w, &s)
			next(s)
		}
	}}
}

// kubernetesSteps are what Kubernetes does by itself.
func kubernetesSteps() []step { return slices.Concat(podSteps(), bindingSteps(), keepingSteps()) }

// podSteps are what happens to Jobs and their pods.
func podSteps() []step {
	return []step{
		onJobs(replacing, func(s *state, j *job) bool {
			return s.hard.replaces && j.isVanished() && !j.terminating
		}, func(_ *world, s *state, i int) {
			s.jobs[i].getsPod()
			s.jobs[i].nth, s.jobs[i].vanished = s.jobs[i].nth+1, false
		}),
		onJobs("the Job controller makes the pod", func(_ *state, j *job) bool {
			return j.pod == podNone && !j.terminating && j.cond == unfinished
		}, func(_ *world, s *state, i int) { s.jobs[i].getsPod() }),
		onJobs("the Job controller makes the pod of a deleted Job", func(_ *state, j *job) bool { return j.inFlight },
			func(_ *world, s *state, i int) { s.jobs[i].getsPod() }),
		onJobs("time passes after the deletion of a Job without a pod", func(_ *state, j *job) bool { return j.fresh },
			func(w *world, s *state, i int) { s.jobs[i].fresh, s.jobs[i].inFlight = false, w.late }),
		onJobs("no pod of a deleted Job appears any more", func(_ *state, j *job) bool { return j.inFlight && !j.fresh },
			func(_ *world, s *state, i int) { s.jobs[i].inFlight = false }),
		onJobs("the garbage collector deletes the pod of a deleted Job", func(_ *state, j *job) bool {
			return j.terminating && (!j.background || j.orphan) && !j.deleting && j.pod != podNone && j.pod != podGone
		}, func(_ *world, s *state, i int) { s.jobs[i].deleting = true }),
		onJobs("the garbage collector ends a pod that was deleted before it had a node", func(_ *state, j *job) bool {
			return j.gated && j.deleting && j.pod == podWaiting
		}, func(w *world, s *state, i int) { s.jobs[i].reported(w, notStarted) }),
		onJobs("the Job controller counts the pod", func(s *state, j *job) bool {
			return (j.pod == podEnded || j.pod == podGone) && !j.terminating && j.cond == unfinished && (!s.hard.replaces || !j.vanished)
		}, func(_ *world, s *state, i int) { s.jobs[i].counted() }),
		onJobs("a Job expires", func(_ *state, j *job) bool {
			return !j.held && j.cond != unfinished && !j.kept && !j.runs() && !j.mayRun && !j.orphan
		}, func(_ *world, s *state, i int) { s.drop(i) }),
		onJobs("the kubelet ends a deleted pod that never started", func(_ *state, j *job) bool {
			return j.pod == podWaiting && j.deleting && !j.forced && !j.gated
		}, func(w *world, s *state, i int) { s.jobs[i].reported(w, notStarted) }),
		onJobs("the kubelet ends the pod of a container that is done", func(_ *state, j *job) bool { return j.pod == podDone && !j.forced },
			func(w *world, s *state, i int) { s.jobs[i].reported(w, s.jobs[i].end) }),
		onJobs("time passes after a forced deletion", func(_ *state, j *job) bool {
			return j.forced && !j.late && !j.gated || j.mayRun && !j.forced // on record, by a leader that did not see the pod
		},
			func(_ *world, s *state, i int) {
				j := &s.jobs[i]
				j.late, j.mayRun = j.late || j.forced, false
				if j.runs() {
					j.progress = over
				}
				s.agesWith(j)
				s.endsUnseen(j)
			}),
	}
}

// endsUnseen ends the container of a pod that has vanished, at its deadline, which its Job records.
func (s *state) endsUnseen(of *job) {
	for i := range s.count() {
		if j := &s.jobs[i]; !of.orphan && j.orphan && j.runs() && j.verb == of.verb && j.number == of.number && j.birth == of.birth {
			j.progress = over
		}
	}
}

// bindingSteps are what happens to the claim and to PVs.
func bindingSteps() []step {
	return []step{
		// A claim may name the PV. Then the binder binds one that is terminating or does not fit, too.
		once("the binder binds", func(w *world, s *state) bool {
			named := w.acts&names != 0 || !s.pv.terminating && !s.pv.misfit
			return s.claim == claimPending && s.pv.phase == unbound && s.pv.ref == refOwn && named
		}, func(_ *world, s *state) {
			s.bindTo(claimBound)
			s.pv.phase, s.other = bound, s.other || s.pv.bare
			s.use()
		}),
		once("the binder binds the rescued PV", func(_ *world, s *state) bool { return s.claim == claimPending && s.rescue.phase == unbound },
			func(_ *world, s *state) {
				s.bindTo(claimElsewhere)
				s.rescue.phase, s.other = bound, true
				s.use()
			}),
		once("the binder binds the static PV", func(_ *world, s *state) bool { return s.claim == claimPending && s.static == unbound },
			func(_ *world, s *state) {
				s.bindTo(claimStatic)
				s.static = bound
			}),
		once("the PV controller asks for a volume", func(w *world, s *state) bool {
			return s.claim == claimPending && s.unasked && (!w.selects || s.node != 0)
		}, func(_ *world, s *state) {
			s.unasked = false
			s.touchClaim()
		}),
		once("the binder releases the PV", func(_ *world, s *state) bool {
			return s.abandoned() && (s.pv.phase == bound || s.pv.phase == unbound) && s.pv.ref == refOwn || s.pv.phase == unbound && s.pv.ref == refTaken
		}, func(w *world, s *state) {
			if s.claim != claimGone && s.pv.retain {
				s.pv.ref = refName
				return
			}
			s.pv.phase, s.pv.kept = released, w.keeps
		}),
		once("the binder releases the rescued PV", func(_ *world, s *state) bool {
			return s.claim == claimGone && (s.rescue.phase == bound || s.rescue.phase == unbound)
		}, func(_ *world, s *state) { s.rescue.phase = released }),
		once("the scheduler selects a node", func(w *world, s *state) bool { return w.selects && s.claim == claimPending && s.node == 0 },
			func(_ *world, s *state) {
				s.node = 2
				s.touchClaim()
			}),
	}
}

// use is called when a claim is bound to the volume.
func (s *state) use() {
	if s.storage == empty {
		s.storage = used
	}
}

// containerSteps are what the container of a run does, and what its kubelet says of it.
func containerSteps() []step {
	return []step{
		onJobs("the container begins", func(s *state, j *job) bool {
			return j.pod == podWaiting && !j.deleting && !j.gated && (!s.lost || j.node != 1)
		},
			func(_ *world, s *state, i int) {
				s.jobs[i].pod = podRunning
				s.begins(i)
			}),
		onJobs("the container makes the volume", func(_ *state, j *job) bool { return j.verb == provision && j.progress == begun },
			func(w *world, s *state, i int) {
				s.jobs[i].progress = volumeMade
				if s.storage == nothing {
					s.storage, s.content = empty, s.jobs[i].source
					if w.adopt {
						s.storage = adopted
					}
				}
			}),
		onJobs("the container writes the PV", func(_ *state, j *job) bool { return j.verb == provision && j.progress == volumeMade },
			func(w *world, s *state, i int) {
				s.jobs[i].progress = pvWritten
				s.shows(i)
				if !w.offers && !s.pv.exists() {
					w.writePV(s, s.jobs[i].rev)
				}
			}),
		onJobs("the container removes the volume", func(_ *state, j *job) bool { return j.verb == remove && j.progress == begun },
			func(_ *world, s *state, i int) {
				s.jobs[i].progress = pvWritten
				s.content = 0
				if (s.jobs[i].gen == 0 || s.jobs[i].neverBound) && s.storage == adopted {
					s.storage = nothing // it is released as it was
					return
				}
				s.commits(i)
				s.storage = nothing
			}),
		onJobs("the container grows the volume", func(_ *state, j *job) bool { return j.verb == expand && j.progress == begun },
			func(_ *world, s *state, i int) { s.jobs[i].progress = pvWritten }),
		onJobs("the container ends well", func(_ *state, j *job) bool { return j.progress == pvWritten },
			func(w *world, s *state, i int) { s.jobs[i].ends(w, done) }),
	}
}

// failureSteps are what may go wrong, as often as the world says.
func failureSteps() []step {
	return []step{
		{"the container writes a PV that does not fit", misfitting},
		{"the container fails", failing},
		failure("the kubelet ends a pod past its deadline that never started", func(j *job) bool {
			return j.pod == podWaiting && !j.gated && !j.forced
		}, func(w *world, j *job) { j.reported(w, notStarted) }),
		failure("the Job controller deletes a gated pod past the Job's deadline", func(j *job) bool {
			return j.pod == podWaiting && j.gated && !j.deleting
		}, func(_ *world, j *job) { j.deleting = true }),
	}
}

// failure returns a step that may happen to each Job and counts as a failure.
func failure(name string, may func(j *job) bool, change func(w *world, j *job)) step {
	return step{name, func(w *world, s state, next func(state)) {
		if s.failures == w.fails {
			return
		}
		s.failures++
		onJobs(name, func(_ *state, j *job) bool { return may(j) }, func(w *world, s *state, i int) { change(w, &s.jobs[i]) }).take(w, s, next)
	}}
}

// misfitting lets a container write a PV that its claim cannot be bound to.
func misfitting(w *world, s state, next func(state)) {
	if s.failures == w.fails || w.offers || s.pv.exists() {
		return
	}
	s.failures++
	onJobs("", func(_ *state, j *job) bool { return j.verb == provision && j.progress == volumeMade }, func(w *world, s *state, i int) {
		s.jobs[i].progress = pvWritten
		w.writePV(s, s.jobs[i].rev)
		s.pv.misfit = true
	}).take(w, s, next)
}

// failing lets each container end with each code that it may end with. An answer is lost where it
// has done all.
func failing(w *world, s state, next func(state)) {
	if s.failures == w.fails {
		return
	}
	for i := range s.count() {
		for _, code := range codes(w, &s.jobs[i]) {
			after := s
			after.failures++
			after.jobs[i].ends(w, code)
			next(after)
		}
	}
}

// codes returns the exit codes with which a container may fail now.
func codes(w *world, j *job) []ending {
	switch {
	case !j.runs():
		return nil
	case j.progress != begun:
		return []ending{tempFail}
	case j.verb == expand:
		return []ending{tempFail, badRequest, full}
	case w.selects && j.verb == provision:
		return []ending{tempFail, full}
	default:
		return []ending{tempFail, badConfig}
	}
}

// getsPod is called when the Job controller has made the pod.
func (j *job) getsPod() {
	j.pod, j.gated, j.kept, j.inFlight, j.fresh = podWaiting, true, true, false, false
}

// delete deletes a Job, in the background or, also when that was done before, in the foreground.
// The garbage collector deletes its pod before it, or after it.
func (j *job) delete(background bool) {
	j.background = background
	if !j.terminating {
		j.inFlight = j.pod == podNone && j.cond == unfinished
		j.fresh = j.inFlight
	}
	j.terminating = true
}

// ends is called when a container ends. Its kubelet says so, unless the pod was deleted by force, and
// may say only later that the pod has ended.
func (j *job) ends(w *world, code ending) {
	j.progress = over
	switch {
	case j.forced:
	case w.slow && code == done:
		j.pod, j.end = podDone, code
	default:
		j.reported(w, code)
	}
}

// reported is called when the kubelet has reported the end of a pod.
func (j *job) reported(w *world, code ending) {
	j.pod, j.end = podEnded, code
	if !w.slow && !j.terminating {
		j.counted()
	}
}

// counted is called when the Job controller has counted the pod.
func (j *job) counted() {
	j.cond = failed
	if j.end == done {
		j.cond = complete
	}
}
