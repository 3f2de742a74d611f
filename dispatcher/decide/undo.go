package decide

import (
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// releaseAbandoned releases the records of a claim that needs no volume any more. The provision's
// goes first, with its undo: while it is held without its undo's Job, the undo would run once more.
func releaseAbandoned(v View) Action {
	for _, verb := range []contract.Verb{contract.Delete, contract.Expand} {
		if r := v.NewestHeld(verb); r != nil {
			return ReleaseRecord{Run: *r, LeftBehind: v.whyLeftBehind(r)}
		}
	}
	return v.reportUnclaimed("the claim has no volume and no held record")
}

// undoProvision deletes what a provision may have made, or releases its record where that is not
// needed or not possible. As long as an unproven PV exists the record is kept, whatever the reason:
// without it the PV is believed. A thief of a token once had the image of another class delete a
// volume in this way, where the image of the claim's own class could not
// (TestRevisionOfItsOwnIsHeldWhereTheImageCannotDelete).
func undoProvision(v View, p *Run) Action {
	switch why := v.whyNotUndone(p); {
	case v.madeNothing(p) && !v.Volume.Exists():
		return ReleaseRecord{Run: *p}
	case why != "" && !v.Volume.Exists():
		return ReleaseRecord{Run: *p, LeftBehind: why}
	case isRetainedInDoubt(p) && !v.Volume.Exists():
		// An administrator may have deleted the PV to keep the volume, so nothing is undone.
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: reason.RetainedInDoubt(p.JobNamespace(), p.Name, jobs.AnnForget+"="+p.ClaimUID)}}
	default:
		return launchDelete(v, v.undoRun(p), true)
	}
}

// DeleteFails reports whether the newest delete of this PV's volume that has ended, or the newest
// undo of the newest provision, has failed twice at least. Its image, its script or its pod may be
// what is wrong, rather than the storage. What earlier ones did says nothing of a volume in use.
func (v View) DeleteFails() bool {
	if v.Volume.Proven() && v.Volume.Use == InUse {
		return false
	}
	d := v.newest(func(r *Run) bool { return r.Verb == contract.Delete && r.State() >= RunEnded && v.isOfVolume(r) })
	return d != nil && hasFailedTwice(d)
}

// ExpandFails reports whether the newest expand of a volume in use has failed twice at least, or
// has failed under another revision than the volume's. An expand runs under that one once it has
// failed so often.
func (v View) ExpandFails(revision string) bool {
	e := v.newest(func(r *Run) bool { return r.Verb == contract.Expand && r.State() >= RunEnded })
	return v.Volume.Proven() && v.Volume.Use == InUse && e != nil && (hasFailedTwice(e) || hasFailed(e) && e.Revision != revision)
}

// hasFailed reports whether a delete or an expand that has ended has not done its work. An expand
// may end with success, and too small a volume.
func hasFailed(r *Run) bool { return !isDone(r) || r.Short(r.Outcome) }

func hasFailedTwice(r *Run) bool {
	return hasFailed(r) && (r.Attempt > 1 || r.Outcome.Verdict == contract.NotStarted && r.Number > 1)
}

// isOfVolume reports whether a delete is of the volume of the PV or, without one that proves a run,
// undoes the newest provision.
func (v View) isOfVolume(r *Run) bool {
	if v.Volume.Proven() {
		return r.Volume == v.Volume.UID
	}
	made := v.MayHaveMade()
	return r.IsUndo() && made != nil && r.After >= made.Number
}

// madeNothing reports whether neither this run nor one before it can have left anything in the
// storage, or whether that has been undone.
func (v View) madeNothing(p *Run) bool {
	return p.NothingBefore && p.Outcome.Verdict.MadeNothing() || isDone(v.undoRun(p))
}

// whyNotUndone returns why what a run may have made stays in the storage, or nothing. Its config
// gives it up with its node, its image cannot delete, or its record says so.
func (v View) whyNotUndone(p *Run) string {
	if why := v.whyReleased(p); why != "" {
		return why
	}
	if why := v.Delete.whyGivenUp(); why != "" {
		return why
	}
	if v.Delete.Problem == nil && !v.Delete.Supported {
		return "its image does not support the verb delete"
	}
	return ""
}

// whyReleased returns why no record stands for what a run or an earlier one may have made, or
// nothing. An administrator has given it up. Or its record is released: another claim may have been
// bound to the PV that stood for the volume then. A later run that never started changes nothing of
// that.
func (v View) whyReleased(p *Run) string {
	made := v.newestConfirmed(contract.Provision)
	switch {
	case v.isForgotten(p):
		return reason.Forgotten
	case v.Volume.Exists():
		return ""
	case !v.isRecord(p):
		return reason.Released
	case made == nil || !v.isRecord(made):
		return p.LeftBehind
	}
	return ""
}

// isRetainedInDoubt reports whether a run with policy Retain ended as if it had written the PV. An
// administrator may have deleted that PV to keep the volume. A PV that the dispatcher was to
// create, and that was never on record, has never been there.
func isRetainedInDoubt(r *Run) bool {
	return r.IsRetained() && r.Outcome.Verdict == contract.Done && (!r.DescribesPV || r.Described != "")
}
