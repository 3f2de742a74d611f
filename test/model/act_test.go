package model

import (
	"fmt"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// act returns the state after the write of an action that was decided on seen, the visible part of an earlier or of
// this state. A write that the API server refuses changes nothing. It returns false where the model ends.
func (w *world) act(s, seen state, action decide.Action) (state, bool) {
	switch a := action.(type) {
	case decide.Wait, decide.ReportProblem, decide.AwaitSlot:
	case decide.StoreRevision:
		s.kept |= 1 << seen.config
	case decide.Launch:
		return w.launch(s, seen, a)
	case decide.CreatePV:
		i := seen.find(provision, number(a.Run))
		if !s.pv.exists() {
			w.writePV(&s, seen.jobs[i].rev)
		}
	case decide.PublishResult:
		publish(&s, seen, a)
	case decide.Reschedule:
		if sameClaim(&s, &seen) {
			s.node = 0
			s.touchClaim()
		}
	case decide.SetResizeStatus:
		if sameClaim(&s, &seen) {
			resize(&s, a.To)
		}
	case decide.AddFinalizer, decide.RemoveFinalizer, decide.SetPVCapacity, decide.DeleteUnboundPV, decide.DeletePV:
		actOnPV(&s, &seen, a)
	case decide.Cancel, decide.Waive, decide.RemovePodFinalizer, decide.RecordOutcome, decide.ReleaseRecord, decide.AnnounceReschedule:
		actOnJob(&s, &seen, a)
	}
	s.tidy()
	return s, true
}

func number(r decide.Run) uint8 { return uint8(r.Number) }

// sameClaim reports whether the claim has not changed since it was seen.
func sameClaim(s, seen *state) bool {
	return s.claim == seen.claim && s.request == seen.request && s.node == seen.node && s.published == seen.published && s.size == seen.size
}

func publish(s *state, seen state, a decide.PublishResult) {
	if s.claim == claimGone || seen.claim == claimGone {
		return
	}
	s.published = number(a.Run) * 2
	if a.Success {
		s.published++
	}
	s.touchClaim()
}

func resize(s *state, to decide.ResizeStage) {
	s.size.resizing, s.size.infeasible = to == decide.ResizeInProgress, to == decide.ResizeInfeasible
	if to == decide.ResizeNone {
		s.size.has = s.pv.grown
	}
	s.touchClaim()
}

// actOnPV writes on the PV. All but the last check that it has not changed since it was seen.
func actOnPV(s, seen *state, action decide.Action) {
	same := s.pv == seen.pv && s.pv.exists()
	switch any(action).(type) {
	case decide.AddFinalizer:
		s.pv.finalizer = s.pv.finalizer || same
	case decide.RemoveFinalizer:
		s.pv.finalizer = s.pv.finalizer && !same
	case decide.SetPVCapacity:
		s.pv.grown = s.pv.grown || same
	case decide.DeleteUnboundPV:
		s.pv.terminating = s.pv.terminating || same
	case decide.DeletePV:
		s.pv.terminating = s.pv.terminating || s.pv.exists() && s.pv.gen == seen.pv.gen
	}
}

// runOf returns the run that an action is about.
func runOf(action decide.Action) decide.Run {
	switch a := any(action).(type) {
	case decide.Cancel:
		return a.Run
	case decide.RemovePodFinalizer:
		return a.Run
	case decide.RecordOutcome:
		return a.Run
	case decide.ReleaseRecord:
		return a.Run
	case decide.AnnounceReschedule:
		return a.Run
	default:
		panic(fmt.Sprintf("the model cannot carry out %T", action))
	}
}

// actOnJob writes on a Job or its pod. A patch checks that it has not changed since it was seen.
func actOnJob(s, seen *state, action decide.Action) {
	run := runOf(action)
	at, was := s.find(verbOf(run.Verb), number(run)), seen.find(verbOf(run.Verb), number(run))
	if at < 0 || was < 0 {
		return
	}
	j := &s.jobs[at]
	if _, cancels := action.(decide.Cancel); cancels {
		j.delete()
		return
	}
	if as := j.asSeen(); as != seen.jobs[was] {
		return
	}
	switch a := any(action).(type) {
	case decide.RemovePodFinalizer:
		j.kept = false
	case decide.RecordOutcome:
		j.recorded = endingOf(a.Run.Outcome.Verdict)
		j.mayRun = a.Run.Outcome.MayRunUntil.After(now)
	case decide.ReleaseRecord:
		j.held = false
	case decide.AnnounceReschedule:
		j.stage = announced
		if !sameClaim(s, seen) {
			j.stage = rescheduled
		}
	}
}

// asSeen returns what observe can see of a Job.
func (j *job) asSeen() job {
	out := *j
	out.progress, out.ghost = notBegun, ghost{}
	return out
}

// delete deletes a Job and, in the foreground, its pod.
func (j *job) delete() {
	j.terminating = true
	j.deleting = j.deleting || j.pod != podNone && j.pod != podGone
}

// launch creates the Job of a launch, unless one of its name exists.
func (w *world) launch(s, seen state, a decide.Launch) (state, bool) {
	at := verbOf(a.Verb)
	j := job{verb: at, number: uint8(a.Number), after: uint8(a.After), clean: a.NothingBefore, held: true}
	if s.find(at, j.number) >= 0 {
		return s, true
	}
	n := s.count()
	if n == maxJobs {
		return s, false
	}
	switch {
	case a.Verb == contract.Provision:
		j.rev, j.hash, j.node = seen.config, seen.request, seen.node
	case a.Undo:
		undone := seen.newest(provision)
		j.rev, j.hash, j.node = undone.rev, undone.hash, undone.node
	default:
		j.gen, j.rev = seen.pv.gen, seen.pv.rev
	}
	if a.Verb == contract.Expand {
		j.gen = seen.pv.gen
	}
	j.ghost.right = s.hasReason(&j)
	s.jobs[n] = j
	return s, true
}

// writePV creates the PV that a run is to write.
func (w *world) writePV(s *state, rev uint8) {
	s.lastGen++
	s.pv = volume{phase: unbound, gen: s.lastGen, rev: rev, retain: w.retain, finalizer: !w.retain}
}
