package decide

import (
	"cmp"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/notes"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// Decide returns the one thing to do next.
func Decide(v View) Action { return firstOf(v, confirmList, beforeGate, confirmRun, decideNext) }

// beforeGate decides what comes before a gated run is confirmed: about the runs that are not gated, and what is on record.
func beforeGate(v View) Action {
	return firstOf(v, noteRival, removePodFinalizer, awaitRuns, recordOutcome, forgetRecord, createDescribed)
}

// decideNext decides when every run has ended and is on record.
func decideNext(v View) Action {
	return firstOf(v, publishResult, releaseSuperseded, releaseUnproven, decideVolume)
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

func decideVolume(v View) Action {
	switch {
	case v.isDeletedUnbound():
		return reclaimVolume(v)
	case v.Volume.Mismatch != "":
		return replaceVolume(v)
	case v.Volume.Proven():
		return keepOrReclaim(v)
	case v.Claim.Abandoned():
		return undoOrRelease(v)
	case v.Claim == ClaimPending:
		return provisionClaim(v)
	case v.Claim == ClaimBound && v.Volume.Unproven != "" && !v.Volume.Foreign && v.NewestHeld(contract.Provision) != nil:
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: v.Volume.Unproven + ": " + notes.Unproven}}
	default:
		return v.rest("the claim asks for nothing now")
	}
}

// awaitRuns waits while a run is unfinished (running). A gated one waits itself, see confirmRun.
func awaitRuns(v View) Action {
	for _, r := range v.Runs {
		if !r.Gated && v.isToBeCancelled(r) {
			return Cancel{Run: r, Why: v.whyCancelled(r)}
		}
	}
	for _, r := range v.Runs {
		switch {
		case r.Gated:
		case r.Unfinished && r.Stuck != nil:
			return handleStuck(v, r)
		case r.Unfinished:
			return Wait{Until: r.RecheckAt, Why: "the Job " + r.Name + " runs"}
		}
	}
	return nil
}

// handleStuck decides about a run that makes no progress.
func handleStuck(v View, r Run) Action {
	idle := r.Stuck.Unstarted || r.Stuck.NodeLost
	switch {
	case r.Terminating:
		return reportStuck(r)
	case r.Stuck.GiveUp:
		return Cancel{Run: r}
	case r.Stuck.Unstarted && r.Probe != "": // another Job finds out when it would start
		return Cancel{Run: r}
	case idle && isPointless(v, r):
		return cancelOrWaive(r)
	default:
		return reportStuck(r)
	}
}

func reportStuck(r Run) Action {
	return ReportProblem{Problem: Problem{Reason: r.Stuck.Reason, Note: "the Job " + r.Name + ": " + r.Stuck.Note}, Until: r.RecheckAt}
}

// cancelOrWaive abandons a run for this claim. The last claim that needs its Job cancels it, any other waives it.
func cancelOrWaive(r Run) Action {
	switch {
	case !r.Others.Wanted:
		return Cancel{Run: r}
	case !r.Waived:
		return Cancel{Run: r, Waive: true}
	default:
		return reportStuck(r)
	}
}

// isPointless reports whether the claim no longer needs a stuck run, or would launch a different one now. A run whose
// pod has started is waited for all the same, since it may have made something. An undo with the same image, on the
// same nodes, would start no better, so it is not pointless.
func isPointless(v View, r Run) bool {
	switch {
	case v.waitsForMissingNode(r):
		return true
	case r.Verb == contract.Expand:
		return v.Volume.Released || !v.Resize.Stage.Wanted() || wouldDiffer(r, v.Expand)
	case r.Verb == contract.Provision:
		return v.Claim.Abandoned() || v.Claim == ClaimTerminating || v.Claim == ClaimPending && (wouldDiffer(r, v.Provision) || v.Provision.ExcludedNode != "")
	default:
		return false
	}
}

// wouldDiffer reports whether a run would be launched now with another request, config or node.
func wouldDiffer(r Run, t Target) bool { return t.Problem == nil && hasChanged(&r, t) }

// recordOutcome records what happened to a run that has ended (ended). It comes before everything that depends on the
// outcome, since the run's pod may be deleted at any time.
func recordOutcome(v View) Action {
	for _, r := range v.Runs {
		if r.Recorded == nil && !r.Unfinished && !v.IsRefused(RecordOutcome{Run: r}) {
			success, describes := hasSucceeded(v, r), describesPV(v, r)
			action := RecordOutcome{Run: r, Success: success, Describes: describes, Release: v.isReleasedWith(r, success)}
			if !success && !describes {
				action.Retry = v.retryAt(&r)
			}
			return action
		}
	}
	return nil
}

// hasSucceeded reports whether a run that has ended succeeded. A provision succeeded if its PV exists and fits,
// whatever the exit code. Any other run succeeded by its exit code, if the volume is as large as it was to be.
func hasSucceeded(v View, r Run) bool {
	if r.Verb == contract.Provision {
		return v.Volume.Fits()
	}
	return r.Outcome.Verdict == contract.Done && !r.Short
}

// isReleasedWith reports whether a run's record is no longer needed once it has its outcome. A proven PV is the record of a provision, and the
// PV that is to be deleted or has grown that of a delete and of an expand. A Job that is being deleted vanishes with its record, so its pod is
// released before.
func (v View) isReleasedWith(r Run, success bool) bool {
	switch {
	case r.Terminating || r.IsUndo():
		return false
	case success || r.Verb == contract.Provision:
		return success
	default: // one that never ran keeps the next one to its backoff, and a volume whose PV was removed by hand is reported
		return r.Outcome.Verdict != contract.NotStarted && v.whyKept(&r) == ""
	}
}

// removePodFinalizer releases a kept pod once its outcome is recorded for every claim that it served, or once its Job no longer exists.
func removePodFinalizer(v View) Action {
	if v.OrphanPod && !v.IsRefused(RemovePodFinalizer{}) {
		return RemovePodFinalizer{}
	}
	for _, r := range v.Runs {
		if r.First && !r.Unfinished && r.Recorded != nil && r.PodKept && !r.Others.Unrecorded && !v.IsRefused(RemovePodFinalizer{Run: r}) {
			return RemovePodFinalizer{Run: r}
		}
	}
	return nil
}

// publishResult keeps the result of the newest provision on the claim as long as there is its Job. A success is written once the claim is
// bound, in a burst somewhat later, and a failure once the PV controller has asked for a volume: a write before that meets the PV controller's own,
// which then reports a failure to the claim's user.
func publishResult(v View) Action {
	p, success := v.Newest(contract.Provision), v.Volume.Fits()
	switch {
	case p == nil || p.Unfinished || p.Published:
	case success && v.Claim == ClaimBound && !v.Now.Before(p.ShownFrom(p.Outcome, v.Now)), !success && v.isRecord(p) && v.Claim != ClaimGone && !v.Unasked:
		return PublishResult{Run: *p, Success: success}
	}
	return nil
}

// rest waits until something changes. It waits until a time when the success of a batch may be written on the claim, which neither a resize nor a change of
// policy waits for, and reports a pod that its Job has left behind.
func (v View) rest(why string) Action {
	switch p := v.Newest(contract.Provision); {
	case p != nil && !p.Published && v.Volume.Fits() && v.Claim == ClaimBound:
		return Wait{Until: p.ShownFrom(p.Outcome, v.Now), Why: why}
	case v.Left != nil:
		return ReportProblem{Problem: *v.Left}
	}
	return Wait{Why: why}
}

// releaseSuperseded releases the record of an older Job when its successor has been confirmed: one that never ran is no
// record. It also releases the record of an undo, and of the delete of a PV that no longer exists, when a later provision has
// been confirmed, that of a run that never ran when there is another, and that of an audit's delete.
func releaseSuperseded(v View) Action {
	if r := v.newest(func(r *Run) bool { return v.isRecord(r) && !r.Unfinished && v.isSuperseded(*r) }); r != nil {
		return ReleaseRecord{Run: *r}
	}
	return nil
}

func (v View) isSuperseded(r Run) bool {
	if r.IsFix() {
		return true // it was the record of its own container only
	}
	if r.Outcome.Verdict == contract.NotStarted && v.Newest(r.Verb).Number > r.Number {
		return true
	}
	if last := v.newestConfirmed(r.Verb); last != nil && last.Number > r.Number {
		return true
	}
	p := v.newestConfirmed(contract.Provision)
	return r.Verb == contract.Delete && (r.Volume == "" || r.Volume != v.Volume.UID) && p != nil && p.Number > r.After
}

// keepOrReclaim decides about a volume whose PV exists (proven). The provision's record is no longer needed: the PV
// is the record now.
func keepOrReclaim(v View) Action {
	if p := v.NewestHeld(contract.Provision); p != nil {
		return ReleaseRecord{Run: *p}
	}
	if action := followPolicy(v); action != nil && (v.Volume.Released || !v.IsRefused(action)) { // a volume in use can grow without its finalizer
		return action
	}
	if action := resizeVolume(v); action != nil {
		return action
	}
	if d := v.keptDelete(); d != nil {
		return ReleaseRecord{Run: *d} // it has not deleted the volume, and is no longer to
	}
	switch {
	case !v.Volume.PolicyDelete:
		return v.reportSpare()
	case !v.Volume.Released || !v.Volume.Orphaned:
		// A PV that is terminating while it is bound is still in use.
		return v.reportUnclaimed("the volume is in use")
	default:
		return reclaimVolume(v)
	}
}

// reportSpare reports a retained PV that was made for a claim while Kubernetes bound that to another. Any other retained PV is left alone.
func (v View) reportSpare() Action {
	if v.Claim == ClaimBoundElsewhere && v.Volume.Unbound && !v.Volume.Terminating {
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: notes.Spare}}
	}
	return v.rest("the volume is retained")
}

// followPolicy adds or removes our finalizer when an administrator has changed the reclaim policy. A terminating PV
// takes no new finalizer.
func followPolicy(v View) Action {
	if vol := v.Volume; !vol.HasFinalizer && vol.PolicyDelete && !vol.Terminating {
		return SetFinalizer{}
	}
	return releaseRetained(v)
}

// reclaimVolume deletes the volume of a released PV (reclaiming), then the PV (deleted).
func reclaimVolume(v View) Action {
	d, left := v.reclaimRun(), v.Delete.whyGivenUp()
	if isDone(d) {
		left = ""
	}
	switch {
	case !isDone(d) && left == "":
		if action := v.awaitDetach(); action != nil {
			return action
		}
		return launchDelete(v, d, false)
	case v.Volume.Terminating && v.Volume.HasFinalizer:
		return SetFinalizer{Remove: true, LeftBehind: left}
	case v.Volume.Terminating:
		return v.rest("the PV goes")
	default:
		return DeletePV{}
	}
}

// undoOrRelease undoes what a run may have made for a claim that no longer needs it (undoing), then releases the
// records. The provision's record goes first: while it is held without its undo's Job, the undo would run once more.
func undoOrRelease(v View) Action {
	if p := v.NewestHeld(contract.Provision); p != nil {
		return undoProvision(v, p)
	}
	for _, verb := range []contract.Verb{contract.Delete, contract.Expand} {
		if r := v.NewestHeld(verb); r != nil {
			return ReleaseRecord{Run: *r, LeftBehind: v.whyKept(r)}
		}
	}
	return v.reportUnclaimed("nothing is left of it")
}

// undoProvision deletes what a provision may have made, or releases its record where that is not needed or not
// possible.
func undoProvision(v View, p *Run) Action {
	switch {
	case v.madeNothing(p) && !v.Volume.Exists: // a PV says otherwise, and is believed once no record says whose it is
		return ReleaseRecord{Run: *p}
	case v.whyNotUndone(p) != "":
		return ReleaseRecord{Run: *p, LeftBehind: v.whyNotUndone(p)}
	case isRetainedInDoubt(p):
		// An administrator may have deleted the PV to keep the volume, so nothing is undone.
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: notes.RetainedInDoubt(p.Name, jobs.AnnForget+"="+p.UID)}}
	default:
		return launchDelete(v, v.undoRun(p), true)
	}
}

// launchDelete launches a delete, or launches it again when it is due.
func launchDelete(v View, last *Run, undo bool) Action {
	number, after := v.lastNumber(contract.Delete)+1, 0
	if p := v.Newest(contract.Provision); p != nil {
		after = p.Number
	}
	target := v.Delete
	if target.Problem == nil && !target.Supported {
		target.Problem = Problemf(reason.DeleteNotSupported, notes.NotSupported, contract.AnnRevision)
	}
	switch {
	case v.Rival.Exists():
		target.Problem = v.Rival.Problem()
	case undo && v.Volume.Exists:
		target.Problem = &Problem{Reason: reason.VolumeInDoubt, Note: v.Volume.Unproven + ": " + notes.Unproven}
	}
	launch := Launch{Verb: contract.Delete, Number: number, Attempt: nextAttempt(last), After: after, Undo: undo, NeverBound: !undo && v.isNeverBound(last)}
	launch.NeedsLive = undo && v.isUndoneReleased()
	return launchWhenReady(v, target, last, launch)
}

// isUndoneReleased reports whether the record of the run that an undo undoes is released.
func (v View) isUndoneReleased() bool {
	made := v.MayHaveMade()
	return made != nil && !v.isRecord(made)
}

// provisionClaim launches a provision (untouched), or the next one (failed). Under another revision or on another
// node than before, it first undoes what the earlier run may have made there.
func provisionClaim(v View) Action {
	p := v.Newest(contract.Provision)
	if action := rescheduleClaim(v, p); action != nil {
		return action
	}
	if p == nil {
		d := v.Newest(contract.Delete)
		return launchWhenReady(v, v.Provision, nil, Launch{Verb: contract.Provision, Number: v.nextNumber(), Attempt: 1, NothingBefore: d == nil || isDone(d)})
	}
	launch := Launch{Verb: contract.Provision, Number: v.nextNumber(), Attempt: nextAttempt(p), NothingBefore: v.madeNothing(p)}
	if !launch.NothingBefore {
		launch.Since = p.Since
	}
	if v.Provision.Problem == nil && hasTargetChanged(p, v.Provision) {
		if v.canUndo(p) {
			return launchDelete(v, v.undoRun(p), true)
		}
		if !launch.NothingBefore {
			launch.LeftBehind = cmp.Or(v.whyNotUndone(p), notes.Kept)
		}
	}
	if hasRequestChanged(p, v.Provision) {
		launch.Attempt = 1
	}
	return launchWhenReady(v, v.Provision, p, launch)
}
