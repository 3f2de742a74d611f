package decide

import (
	"fmt"
	"slices"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// Decide returns the one thing to do next. It releases no record of a run whose container may still
// be running: when the Job no longer exists, nothing else knows of that container. A pod that was
// force-deleted was once forgotten with its Job, and a delete ran beside the provision
// (TestDeleteWaitsForAProvisionWhosePodWasDeletedByForce).
func Decide(v View) Action {
	action := firstOf(v, beforeGate, confirmRun, decideNext)
	if release, ok := action.(ReleaseRecord); ok && v.mayStillRun(&release.Run) {
		return v.holdLaunches()
	}
	return action
}

// beforeGate decides what comes before a gated run is confirmed: about the runs that are not gated,
// and what is on record.
func beforeGate(v View) Action {
	return firstOf(v, leaveNewer, keepVolume, cancelUnstarted, freeMisnamed, removePodFinalizer, awaitRuns, recordOutcome, forgetRecord, createDescribed)
}

// decideNext decides when every run has ended and is on record.
func decideNext(v View) Action {
	return firstOf(v, publishResult, decideUnpublished)
}

// decideUnpublished decides what follows the result of a run, which may be written later.
func decideUnpublished(v View) Action {
	return firstOf(v, releaseSuperseded, freeUnproven, decideVolume)
}

// firstOf returns the action of the first rule that applies, or nil.
func firstOf(v View, rules ...func(View) Action) Action {
	for _, rule := range rules {
		if action := rule(v); action != nil {
			return action
		}
	}
	return nil
}

// decideVolume decides what is to become of the volume, by the state of the UID.
func decideVolume(v View) Action {
	switch v.State() {
	case StateDiscarded:
		return reclaimVolume(v)
	case StateMismatched:
		return replaceVolume(v)
	case StateBinding, StateInUse, StateExpanding, StateRetained, StateReclaiming:
		return keepOrReclaim(v)
	case StateUndoing:
		return undoProvision(v, v.NewestHeld(contract.Provision))
	case StateAbandoned:
		return releaseAbandoned(v)
	case StateInDoubt:
		return v.reportInDoubt()
	case StateUntouched, StateAttempted:
		return provisionClaim(v)
	case StateUnserved:
	}
	return v.rest("nothing to do for the claim")
}

// leaveNewer leaves a UID alone as long as it has a Job that a later dispatcher has written. What
// that one knows of the claim, and this one does not, could be a volume. A Job that is a record no
// more expires, and is not reported.
func leaveNewer(v View) Action {
	r := v.newest(func(r *Run) bool { return r.Newer && (r.Held || r.State() < RunEnded) })
	switch {
	case r != nil:
		return ReportProblem{Problem: Problem{Reason: reason.RecordTooNew, Note: reason.WrittenByNewer(r.JobNamespace(), r.Name)}}
	case v.newest(func(r *Run) bool { return r.Newer }) != nil:
		return Wait{Why: "a newer dispatcher has written a Job of the claim, which expires"}
	default:
		return nil
	}
}

// keepVolume keeps the volume of a UID that another PV may stand for, also when that PV no longer
// exists. An administrator may keep a volume under another PV, and delete that one, too: as
// Kubernetes says of the policy Retain, the volume stays. The UID's own PV gets that policy. If it
// proves nothing, does not exist or is a retained mismatch, the PV that may stand for the volume is
// noted on the record of the newest provision. A volume that a done run has deleted needs neither.
func keepVolume(v View) Action {
	switch p := v.NewestHeld(contract.Provision); {
	case isDone(v.reclaimRun()):
		return nil
	case v.Volume.Proven() && v.Volume.PolicyDelete && v.WhyRival != "":
		return v.unlessRefused(KeepVolume{})
	case p != nil && p.Rival == "" && v.needsNote():
		return v.unlessRefused(KeepVolume{Run: *p})
	default:
		return nil
	}
}

// needsNote reports whether another PV may stand for the volume, or the UID's own PV proves nothing
// or is a retained mismatch.
func (v View) needsNote() bool {
	return v.Volume.State == Unproven || v.Volume.State == Foreign || v.isRetainedMismatch() || v.WhyRival != "" && !v.Volume.Proven()
}

// isRetainedMismatch reports whether the PV of a pending claim can never be bound to it, and has
// the policy Retain. An administrator may delete that PV to keep the volume.
func (v View) isRetainedMismatch() bool {
	return v.Volume.State == Mismatched && !v.Volume.PolicyDelete && v.Claim == ClaimPending
}

// isKeepingRefused reports whether the policy Retain could not be set on a PV with a rival. The
// record is held until it can: the rival may be noted only there.
func (v View) isKeepingRefused() bool { return v.WhyRival != "" && v.IsRefused(KeepVolume{}) }

// freeMisnamed removes our finalizer from the UID's PV of another name, unless its note could not
// be written on the record.
func freeMisnamed(v View) Action {
	if p := v.NewestHeld(contract.Provision); !v.Misnamed || p != nil && v.IsRefused(KeepVolume{Run: *p}) {
		return nil
	}
	return v.unlessRefused(SetFinalizer{Remove: true, Misnamed: true})
}

// removePodFinalizer frees a kept pod whose Job no longer exists.
func removePodFinalizer(v View) Action {
	if !v.OrphanPod {
		return nil
	}
	return v.unlessRefused(RemovePodFinalizer{})
}

// recordOutcome records what happened to a run that has ended. It comes before everything that
// depends on the outcome, since the run's pod may be deleted at any time. A released record stays
// released. A webhook once removed the outcome that was written with the release, and a volume was
// undone whose PV had been retained and deleted by hand
// (TestAnOutcomeThatIsTakenOffUndoesNoRetainedVolume).
func recordOutcome(v View) Action {
	for _, r := range v.Runs {
		if r.State() == RunEnded && !v.IsRefused(RecordOutcome{Run: r}) {
			success, describes := hasSucceeded(v, r), describesPV(v, r)
			action := RecordOutcome{
				Run: r, Success: success, Describes: describes,
				Release: !r.Held || v.isReleasedWith(r, success),
			}
			if !success && !describes {
				action.Retry = v.retryAt(&r)
			}
			return action
		}
	}
	return nil
}

// hasSucceeded reports whether a run that has ended succeeded. A provision succeeded if its PV
// exists and fits, whatever the exit code. Any other run succeeded by its exit code, if the volume
// is as large as it was to be.
func hasSucceeded(v View, r Run) bool {
	if r.Verb == contract.Provision {
		return v.Volume.State == Fits
	}
	return r.Outcome.Verdict == contract.Done && !r.Short(r.Outcome)
}

// describesPV reports whether the dispatcher is to create the PV that a run has described: the
// config leaves it to the dispatcher, and the claim still needs the volume.
func describesPV(v View, r Run) bool {
	return r.DescribesPV && r.Verb == contract.Provision && r.Outcome.Verdict == contract.Done && r.WhyNoPV == "" &&
		!v.Volume.Exists() && v.Claim == ClaimPending
}

// isReleasedWith reports whether a run's record is no longer needed once it has its outcome. A
// proven PV is the record of a provision. The PV that is to be deleted is that of a delete, and the
// one that has grown that of an expand. A Job that is being deleted vanishes with its record, so
// its pod is freed before.
func (v View) isReleasedWith(r Run, success bool) bool {
	switch {
	case r.Terminating || r.IsUndo() || v.mayStillRun(&r) || r.Verb == contract.Provision && (v.isKeepingRefused() || v.isEarlierOnRecord(r)):
		return false
	case success || r.Verb == contract.Provision:
		return success
	default: // one that never ran keeps the next one to its backoff, and a volume whose PV was removed by hand is reported
		return r.Outcome.Verdict != contract.NotStarted && v.whyLeftBehind(&r) == ""
	}
}

// isEarlierOnRecord reports whether an earlier provision is on record. Its record is released
// first. Left beside the PV of a later run, it made that PV look forged, by its revision: the later
// Job had expired while no dispatcher ran (TestDeathAtAnyWriteLeavesNoPVInDoubt). And a later Job
// can outlive only those whose expiry is known.
func (v View) isEarlierOnRecord(r Run) bool {
	return slices.ContainsFunc(v.Runs, func(o Run) bool { return o.Verb == r.Verb && o.Held && o.Number < r.Number })
}

// whyLeftBehind returns why the volume stays in the storage that a run was to delete, or nothing.
// If its PV no longer exists, nothing will delete it.
func (v View) whyLeftBehind(r *Run) string {
	if r.Verb != contract.Delete || r.IsUndo() || isDone(r) || v.Volume.Exists() && v.Volume.UID == r.Volume {
		return ""
	}
	return "its PersistentVolume was removed before its volume was deleted"
}

// forgetRecord releases the records that an administrator has given up, by an annotation on the Job
// of the newest of them. What an older run may have made is the same volume. As long as an unproven
// PV exists, the record of a provision is still held. Without it the PV is believed, and its volume
// would be deleted with the claim, as the PV says.
func forgetRecord(v View) Action {
	if r := v.newest(func(r *Run) bool {
		believed := r.Verb == contract.Provision && v.Volume.State == Unproven
		return v.isRecord(r) && r.State() >= RunEnded && (r.Forget || v.isForgotten(r)) && !believed
	}); r != nil {
		return ReleaseRecord{Run: *r, LeftBehind: reason.Forgotten}
	}
	return nil
}

// isForgotten reports whether an administrator has given up what a provision may have made, in the
// record of that run or of a later one.
func (v View) isForgotten(p *Run) bool {
	return p.Verb == contract.Provision && slices.ContainsFunc(v.Runs, func(r Run) bool { return r.Forget && r.Verb == p.Verb && r.Number >= p.Number })
}

// With write-pv: dispatcher the container only says where the volume is, and the dispatcher creates
// the PV.

// createDescribed creates the PV that is on record as described, whatever has become of the claim
// and its config. Another leader may be about to create it, and the claim would be bound to a
// volume that was undone meanwhile. A volume that is not needed any more is reclaimed by its PV.
// Once the PV exists it is the record: beside another one it would be created once more after it
// was deleted. A Job that is being deleted vanishes with its record, so older records are released
// before it. They may name another revision than the PV, which was once taken for forged
// (TestJobsThatExpireAtOnceLoseNothing).
func createDescribed(v View) Action {
	for i := range v.Runs {
		r := &v.Runs[i]
		switch {
		case !v.hasDescribed(r) || v.isKeepingRefused():
		case !v.Volume.Exists():
			return CreatePV{Run: *r}
		case v.Volume.State == Fits && !r.Terminating, v.Volume.Proven() && v.Volume.Terminating && v.Volume.HasFinalizer: // it stays until its volume has been deleted
			return ReleaseRecord{Run: *r}
		}
	}
	return nil
}

// hasDescribed reports whether the PV is to be created that a run has described: its volume is
// neither undone nor that of a later run.
func (v View) hasDescribed(r *Run) bool {
	last := v.newestConfirmed(contract.Provision)
	return r.Described != "" && v.isRecord(r) && r.WhyNoPV == "" && v.undoRun(r) == nil && (last == nil || last.Number <= r.Number)
}

// publishResult keeps the result of the newest provision on the claim as long as its Job exists. A
// success is written once the claim is bound, in a burst somewhat later. A failure is written once
// the PV controller has asked for a volume. An earlier write would meet the PV controller's own,
// which then reports a failure to the claim's user.
func publishResult(v View) Action {
	p, success := v.Newest(contract.Provision), v.Volume.State == Fits
	switch {
	case p == nil || p.State() < RunEnded || p.Published:
	case success && v.Claim == ClaimBound && !v.Now.Before(p.ShownFrom(p.Outcome, v.Now)), !success && v.isRecord(p) && v.Claim != ClaimGone && !v.Unasked:
		return PublishResult{Run: *p, Success: success}
	}
	return nil
}

// releaseSuperseded releases the records that a later run has replaced. A run that never ran is
// replaced by any later one of its verb, every other run by one that has been confirmed. When a
// later provision has been confirmed, it also releases the record of an undo, and of the delete of
// a PV that no longer exists.
func releaseSuperseded(v View) Action {
	if r := v.newest(func(r *Run) bool { return v.isRecord(r) && r.State() >= RunEnded && v.isSuperseded(*r) }); r != nil {
		return ReleaseRecord{Run: *r}
	}
	return nil
}

func (v View) isSuperseded(r Run) bool {
	if r.Outcome.Verdict == contract.NotStarted && v.Newest(r.Verb).Number > r.Number {
		return true
	}
	if last := v.newestConfirmed(r.Verb); last != nil && last.Number > r.Number {
		return true
	}
	p := v.newestConfirmed(contract.Provision)
	return r.Verb == contract.Delete && (r.Volume == "" || r.Volume != v.Volume.UID) && p != nil && p.Number > r.After
}

// NewestHeld returns the newest run of a verb whose record is held, or nil. A run after it that
// never ran may be on record without one.
func (v View) NewestHeld(verb contract.Verb) *Run {
	return v.newest(func(r *Run) bool { return r.Verb == verb && v.isRecord(r) })
}

// Newest returns the run of a verb with the highest number, or nil.
func (v View) Newest(verb contract.Verb) *Run {
	return v.newest(func(r *Run) bool { return r.Verb == verb })
}

// newest returns the run with the highest number of those that are wanted, or nil.
func (v View) newest(wanted func(*Run) bool) *Run {
	var last *Run
	for i := range v.Runs {
		if r := &v.Runs[i]; wanted(r) && (last == nil || r.Number > last.Number) {
			last = r
		}
	}
	return last
}

// newestConfirmed returns the run of a verb with the highest number whose container may have
// started, or nil.
func (v View) newestConfirmed(verb contract.Verb) *Run {
	return v.newest(func(r *Run) bool {
		return r.Verb == verb && r.State() >= RunRunning && r.Outcome.Verdict != contract.NotStarted
	})
}

// isRecord reports whether a run is on record, and is needed there or can be released.
func (v View) isRecord(r *Run) bool {
	return r.Held && (len(v.Refused) == 0 || !v.isReplaced(r) || !v.IsRefused(ReleaseRecord{Run: *r}))
}

// isReplaced reports whether something else stands for what a run has made: the Job of a later run,
// or the PV. An undo that has succeeded does not: if its own record were released first, it would
// be launched again.
func (v View) isReplaced(r *Run) bool {
	return v.Newest(r.Verb).Number > r.Number || r.Verb == contract.Provision && v.Volume.Proven()
}

// undoRun returns the newest run that undoes provision p, or nil. The delete of a PV that p wrote
// is one, too, once that PV no longer exists, and one that came after a later provision.
func (v View) undoRun(p *Run) *Run {
	d := v.Newest(contract.Delete)
	if d == nil || d.Volume != "" && v.Volume.Exists() || d.After < p.Number {
		return nil
	}
	return d
}

// reclaimRun returns the newest run that deletes this very PV's volume, or nil. A PV of the same
// name that appeared after an undo needs a delete of its own.
func (v View) reclaimRun() *Run {
	d := v.Newest(contract.Delete)
	if d == nil || d.Volume == "" || d.Volume != v.Volume.UID {
		return nil
	}
	return d
}

// isDone reports whether a run exists and its verdict is Done.
func isDone(r *Run) bool { return r != nil && r.Outcome.Verdict == contract.Done }

// A write that was refused a moment ago is skipped where no later step relies on it, and the next
// rule decides. A policy on old Jobs once kept a claim from its next attempt for ever
// (TestRetriesGoOnWhereAPolicyKeepsOldRecords). Any other write is decided on again. All are tried
// again when the refusal is a minute old.

// WriteOf names the write of an action, by the kind of the action and its run.
func WriteOf(a Action) string {
	if f, ok := a.(SetFinalizer); ok {
		return fmt.Sprintf("%T remove=%t misnamed=%t", f, f.Remove, f.Misnamed)
	}
	return fmt.Sprintf("%T %s", a, RunOf(a))
}

// IsRefused reports whether the write of an action was refused a moment ago. A record is not
// released whose outcome could not be written: its Job would expire, and nothing would ever remove
// the finalizer of its pod.
func (v View) IsRefused(a Action) bool {
	if release, ok := a.(ReleaseRecord); ok && v.IsRefused(RecordOutcome{Run: release.Run}) {
		return true
	}
	return len(v.Refused) > 0 && slices.Contains(v.Refused, WriteOf(a))
}

// unlessRefused returns an action, or nil if its write was refused.
func (v View) unlessRefused(a Action) Action {
	if v.IsRefused(a) {
		return nil
	}
	return a
}

// Exists reports whether there is a PV.
func (v Volume) Exists() bool { return v.State != Absent }

// Proven reports whether the PV exists and carries the claim's UID.
func (v Volume) Proven() bool { return v.State >= Mismatched }
