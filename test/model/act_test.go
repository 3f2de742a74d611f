package model

import (
	"fmt"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// act returns the state after the write of an action that was decided on what was seen, the visible
// part of an earlier or of this state. A write that the API server refuses changes nothing. It
// returns false where the model ends.
func (w *world) act(s state, d *decision) (state, bool) {
	seen := d.seen
	switch a := d.action.(type) {
	case decide.Wait, decide.ReportProblem, decide.AwaitSlot:
	case decide.StoreRevision:
		s.kept |= 1 << seen.config
	case decide.Launch:
		return w.launch(s, d, a)
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
			s.writesOnClaim()
		}
	case decide.SetResizeStage:
		switch {
		case a.To == decide.ResizeStored:
			actOnPV(&s, &seen, a)
		case sameClaim(&s, &seen):
			resize(&s, a.To)
		}
	case decide.Confirm:
		if a.Run.Verb == contract.Provision && seen.mayGetOther() {
			s.broken = broken{law: lawOther}
		}
		if !deletesPV(a.Run) || w.deleteJudged(&s, &seen, a.Run) {
			ungate(&s, &seen, a.Run)
		}
	case decide.KeepVolume:
		keepVolume(&s, &seen, a)
	case decide.SetFinalizer, decide.DeletePV:
		actOnPV(&s, &seen, a)
	case decide.RemovePodFinalizer:
		s.letOrphansGo()
	case freesPod:
		freePod(&s, &seen, a.run)
	case decide.Cancel, decide.RecordOutcome, decide.ReleaseRecord, decide.AnnounceReschedule:
		actOnJob(&s, &seen, a)
	}
	s.tidy()
	return s, true
}

func number(r decide.Run) uint8 { return uint8(r.Number) }

// sameClaim reports whether the claim has not changed since it was seen.
func sameClaim(s, seen *state) bool {
	return s.claim == seen.claim && s.request == seen.request && s.source == seen.source && s.node == seen.node && s.published == seen.published && s.size == seen.size && s.unasked == seen.unasked
}

func publish(s *state, seen state, a decide.PublishResult) {
	if s.claim == claimGone || seen.claim == claimGone {
		return
	}
	s.published = number(a.Run) * 2
	if a.Success {
		s.published++
	}
	s.writesOnClaim()
}

func resize(s *state, to decide.ResizeStage) {
	s.size.resizing, s.size.infeasible = to == decide.ResizeInProgress, to == decide.ResizeInfeasible
	if to == decide.ResizeNone {
		s.size.has = s.pv.grown
	}
	s.touchClaim()
}

// deletesPV reports whether the confirmation of a run begins with the deletion of its PV.
func deletesPV(run decide.Run) bool { return run.Verb == contract.Delete && !run.IsUndo() }

// deleteJudged deletes the PV of a reclaim that is confirmed, unless it has changed since it was
// seen. It reports whether it did.
func (w *world) deleteJudged(s, seen *state, run decide.Run) bool {
	if same := s.pv == seen.pv || w.careless && s.pv.exists(); !same || !s.pv.exists() {
		return false
	}
	if at := s.same(seen, run); at >= 0 {
		s.jobs[at].ghost.right = s.hasReason(&s.jobs[at])
	}
	w.confirmsDelete(s, seen)
	s.pv.terminating = true
	if s.claim == claimPending && s.pv.phase == unbound && s.pv.ref == refOwn {
		s.pv.ref = refTaken
	}
	return true
}

// ungate removes the gate of a pod, whatever has changed since it was seen. A pod that is deleted
// gets no node all the same.
func ungate(s, seen *state, run decide.Run) {
	at := s.same(seen, run)
	if at < 0 || s.jobs[at].deleting {
		return
	}
	j, nth := &s.jobs[at], seen.jobs[seen.find(verbOf(run.Verb), number(run))].nth
	j.noted = nth + 1
	if j.nth != nth {
		return // the pod that was seen has vanished
	}
	if j.gated {
		j.ghost.right = deletesPV(run) && j.ghost.right || s.hasReason(j)
	}
	j.gated = false
}

// same returns the index of the very Job that was seen, or -1.
func (s *state) same(seen *state, run decide.Run) int {
	at, was := s.find(verbOf(run.Verb), number(run)), seen.find(verbOf(run.Verb), number(run))
	if at < 0 || was < 0 || s.jobs[at].birth != seen.jobs[was].birth {
		return -1
	}
	return at
}

// actOnPV writes on the PV. All but the last check that it has not changed since it was seen.
func actOnPV(s, seen *state, action decide.Action) {
	same := s.pv == seen.pv && s.pv.exists()
	switch a := any(action).(type) {
	case decide.SetFinalizer: // the model has no PV of another name with our finalizer
		s.told = s.told || same && a.LeftBehind != ""
		if same {
			s.pv.finalizer = !a.Remove
		}
	case decide.SetResizeStage:
		s.pv.grown = s.pv.grown || same
	case decide.DeletePV:
		s.pv.terminating = s.pv.terminating || s.pv.exists() && s.pv.gen == seen.pv.gen
	}
}

// keepVolume writes on a Job or on the PV, unless it has changed since it was seen.
func keepVolume(s, seen *state, a decide.KeepVolume) {
	if a.Run.Name == "" {
		s.pv.retain = s.pv.retain || s.pv == seen.pv && s.pv.exists()
		return
	}
	at, was := s.same(seen, a.Run), seen.find(verbOf(a.Run.Verb), number(a.Run))
	if at >= 0 && s.jobs[at].object() == seen.jobs[was].object() {
		s.jobs[at].rival = true
	}
}

// runOf returns the run that an action is about.
func runOf(action decide.Action) decide.Run {
	switch a := any(action).(type) {
	case decide.Cancel:
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

// actOnJob writes on a Job or its pod. A patch of a Job checks that it has not changed since it was
// seen.
func actOnJob(s, seen *state, action decide.Action) {
	run := runOf(action)
	at := s.same(seen, run)
	if at < 0 {
		return
	}
	j, was := &s.jobs[at], seen.find(verbOf(run.Verb), number(run))
	if _, cancels := any(action).(decide.Cancel); cancels {
		j.delete(false)
		return
	}
	if j.object() != seen.jobs[was].object() {
		return
	}
	switch a := any(action).(type) {
	case decide.RecordOutcome:
		j.recorded = endingOf(a.Run.Outcome.Verdict)
		j.mayRun = a.Run.Outcome.MayRunUntil.After(now) && !j.late // a time that has passed meanwhile is no other
		j.held = j.held && !a.Release
		j.described = a.Describes
	case decide.ReleaseRecord:
		j.held = false
		s.told = s.told || a.LeftBehind != ""
	case decide.AnnounceReschedule:
		j.stage = announced
		if !sameClaim(s, seen) {
			j.stage = rescheduled
		}
	}
}

// freesPod is what package run does for a Job without asking its claims: it releases the pod.
type freesPod struct {
	decide.Wait
	run decide.Run
}

// freePod releases the pod of a run.
func freePod(s, seen *state, run decide.Run) {
	at := s.same(seen, run)
	if at < 0 {
		return
	}
	s.jobs[at].kept = false
	if seen.jobs[seen.find(verbOf(run.Verb), number(run))].recorded == noEnd { // a cache may show an earlier Job of this name, which the model does not tell apart
		s.broken = broken{law: lawOutcome}
	}
}

// letOrphansGo removes the finalizers of the pods whose Jobs no longer exist.
func (s *state) letOrphansGo() {
	for i := range s.count() {
		if j := &s.jobs[i]; j.orphan && (j.pod == podEnded || j.gated && j.deleting) {
			j.kept = false
		}
	}
}

// object returns what a write on the Job itself changes.
func (j job) object() job {
	return job{noted: j.noted, forget: j.forget, described: j.described, rival: j.rival, cond: j.cond, recorded: j.recorded, mayRun: j.mayRun, stage: j.stage, held: j.held, terminating: j.terminating, birth: j.birth}
}

// launch creates the Job of a launch, unless one of its name exists.
func (w *world) launch(s state, d *decision, a decide.Launch) (state, bool) {
	seen, at := d.seen, verbOf(a.Verb)
	j := job{verb: at, number: uint8(a.Number), after: uint8(a.After), clean: a.NothingBefore, held: true, birth: s.births}
	if s.find(at, j.number) >= 0 {
		return s, true
	}
	n := s.count()
	if n == maxJobs {
		return s, false
	}
	switch {
	case a.Verb == contract.Provision:
		j.rev, j.hash, j.node, j.source = seen.config, seen.request, seen.node, seen.source
	case a.Undo:
		undone := seen.newest(provision)
		j.rev, j.hash, j.node, j.source = d.under, undone.hash, undone.node, undone.source
	default:
		if a.Verb == contract.Delete {
			w.launchesDelete(&s, &seen)
		}
		j.gen, j.rev, j.node, j.neverBound = seen.pv.gen, d.under, seen.pv.node, a.NeverBound
	}
	if a.Verb == contract.Expand {
		j.gen = seen.pv.gen
	}
	s.jobs[n] = j
	s.told = s.told || a.LeftBehind != ""
	return s, true
}

// writePV creates the PV that a run is to write.
func (w *world) writePV(s *state, rev uint8) {
	s.lastGen++
	s.pv = volume{phase: unbound, gen: s.lastGen, rev: rev, retain: w.retain || w.adopt, finalizer: true}
	if w.forgets {
		s.pv.node = s.node
	}
}
