package decide

import (
	"slices"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// keepOrReclaim decides about a volume whose PV proves its provision.
func keepOrReclaim(v View) Action {
	if p := v.NewestHeld(contract.Provision); p != nil && !v.isKeepingRefused() {
		return releaseProven(v, p)
	}
	if action := followPolicy(v); action != nil && (v.Volume.Use == Released || !v.IsRefused(action)) { // a volume in use can grow without its finalizer
		return action
	}
	if action := resizeVolume(v); action != nil {
		return action
	}
	switch state, d := v.State(), v.NewestHeld(contract.Delete); {
	case state == StateReclaiming:
		return reclaimVolume(v)
	case d != nil:
		return ReleaseRecord{Run: *d} // it has not deleted the volume, and is no longer to
	case state == StateRetained:
		return v.reportSpare()
	default: // a PV that is terminating while it is bound is still in use
		return v.reportUnclaimed("the volume is in use")
	}
}

// releaseProven releases the record of a provision that is no longer needed: the PV is the record now.
func releaseProven(v View, p *Run) Action {
	if v.isToBeShown(p) {
		return v.rest("the Job is being deleted, and its result is not yet on the claim")
	}
	return ReleaseRecord{Run: *p}
}

// isToBeShown reports whether a Job that is being deleted is held for its result. The claim will be
// bound, and nothing could write the result after the Job no longer exists. Only the result of the
// newest provision is ever written (publishResult).
func (v View) isToBeShown(p *Run) bool {
	return p.Terminating && !p.Published && (v.Claim == ClaimPending || v.Claim == ClaimNotOurs || v.Claim == ClaimBound) && p.Name == v.Newest(contract.Provision).Name
}

// followPolicy adds or removes our finalizer when an administrator has changed the reclaim policy.
// A terminating PV takes no new finalizer.
func followPolicy(v View) Action {
	if vol := v.Volume; !vol.HasFinalizer && vol.PolicyDelete && !vol.Terminating {
		return SetFinalizer{}
	}
	return freeRetained(v)
}

// freeUnproven removes our finalizer from a PV that does not prove a provision: where its policy is
// Retain, and where it was deleted and no claim needs it. Otherwise no remedy that an event names
// would ever remove the PV.
func freeUnproven(v View) Action {
	vol := v.Volume
	switch {
	case vol.State != Unproven || !vol.HasFinalizer:
		return nil
	case !vol.PolicyDelete:
		return freeRetained(v)
	case vol.Terminating && vol.Use != InUse && v.Claim.Abandoned() && v.reclaimRun() == nil: // no claim needs it, and no run deletes its volume
		return SetFinalizer{Remove: true, LeftBehind: v.whyUnprovenStays()}
	}
	return nil
}

// freeRetained removes our finalizer from a PV with the policy Retain. Before that, the record of
// its provision is released, or is noted and held. An administrator may delete the PV to keep the
// volume. It was once undone then, although a claim had been bound to it
// (TestAVolumeIsKeptWhoseUnprovenPVWasRetainedAndDeleted).
func freeRetained(v View) Action {
	if vol := v.Volume; !vol.HasFinalizer || vol.PolicyDelete || v.isReleaseRefused() {
		return nil
	}
	p := v.NewestHeld(contract.Provision)
	if p == nil {
		return v.freeUnlessBinding()
	}
	switch unnoted := p.Rival == ""; {
	case v.isRecordNeeded(p):
		return nil
	case unnoted, v.Claim.Abandoned():
		return ReleaseRecord{Run: *p, LeftBehind: reason.LeftRetained}
	default:
		// The record of a claim that waits is held, with the note that keeps the volume. A thief of
		// the pod's token once wrote a second PV, which was believed
		// (TestRevisionOfItsOwnIsNotWhatTheSecondForgedPVNames).
		return v.freeUnlessBinding()
	}
}

// isRecordNeeded reports whether the record of a retained PV's provision must stay, and our
// finalizer with it. The note that keeps the volume could not be written, or only the record
// contradicts the PV. Without it the volume would be grown, or deleted once the PV's policy is
// Delete.
func (v View) isRecordNeeded(p *Run) bool {
	if p.Rival == "" && v.isRetainedMismatch() {
		return true
	}
	return v.Volume.State == Unproven && (v.Claim == ClaimBound || !v.Volume.Terminating)
}

// freeUnlessBinding removes our finalizer from a PV with the policy Retain, unless it is unbound
// and fits its claim. The PV controller writes on such a PV now, or did a moment ago, and a write
// of the version before is refused.
func (v View) freeUnlessBinding() Action {
	vol := v.Volume
	unbound := vol.Use == Unbound || vol.Use == NeverBound
	if unbound && vol.State == Fits && !vol.Terminating && !v.Claim.Abandoned() {
		return nil
	}
	return v.unlessRefused(SetFinalizer{Remove: true, NeedsLive: !v.Volume.RecordReleased, LeftBehind: v.whyRivalKeeps()})
}

// whyRivalKeeps returns why the volume of a terminating PV stays, if the PV is retained since
// another may stand for its volume. The policy of such a PV cannot be set to Delete again.
func (v View) whyRivalKeeps() string {
	if !v.Volume.Terminating {
		return ""
	}
	return v.WhyRival
}

// isReleaseRefused reports whether the write that releases the record of a provision was refused.
// Its PV stays then. Without that, the run would count as failed once its Job can be written, and
// would be undone.
func (v View) isReleaseRefused() bool {
	return len(v.Refused) > 0 && slices.ContainsFunc(v.Runs, func(r Run) bool {
		return r.Held && r.Verb == contract.Provision && v.IsRefused(ReleaseRecord{Run: r})
	})
}

// whyUnprovenStays returns why the volume of an unproven PV stays in the storage. It returns
// nothing while its provision is on record: that is undone, or its own event says why it is not.
func (v View) whyUnprovenStays() string {
	if v.NewestHeld(contract.Provision) != nil {
		return ""
	}
	return v.Volume.Why
}

// reportInDoubt reports a PV that proves no provision, and that keeps the claim from its volume, or
// contradicts the record of its provision.
func (v View) reportInDoubt() Action {
	if v.Claim == ClaimBound && v.NewestHeld(contract.Provision) == nil {
		return v.rest("the claim is bound to a PersistentVolume that proves no provision")
	}
	return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: reason.Unproven.After("%s: ", v.Volume.Why)}} // as long as it exists, every attempt only finds it there
}

// reportSpare reports a retained PV that was made for a claim while Kubernetes bound that to
// another, which may be a second PV of the same volume. Any other retained PV is left alone.
func (v View) reportSpare() Action {
	switch {
	case v.Claim != ClaimBoundElsewhere || !v.Volume.IsUnbound() || v.Volume.Terminating:
		return v.rest("the volume is retained")
	case v.WhyRival != "":
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: reason.KeptByPolicy.After("%s: ", v.WhyRival)}}
	default:
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: reason.Spare}}
	}
}

// reportUnclaimed waits, or reports a PV that would be deleted with its volume if its claimRef said
// that its claim was deleted.
func (v View) reportUnclaimed(why string) Action {
	vol := v.Volume
	switch {
	case !v.Claim.Abandoned() || !vol.HasFinalizer:
		return v.rest(why)
	case vol.State == Fits && vol.Why != "" && vol.Reserved != nil:
		return v.reportProblem(*vol.Reserved)
	case vol.State == Fits && vol.Why != "":
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: reason.Unclaimed.After("%s, ", vol.Why)}}
	case vol.State == Unproven && vol.Use != InUse:
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: reason.Unproven.After("%s: ", vol.Why)}}
	default:
		return v.rest(why)
	}
}

// replaceVolume decides about a pending claim whose PV exists and can never be bound to it
// (StateMismatched). A PV that was never bound is deleted with its volume. The confirmation of that
// run takes the PV from its claim, so that no claim is bound to it, and deletes it. The next
// attempt may do better after that. As long as the PV exists, every attempt only finds it there.
func replaceVolume(v View) Action {
	vol := v.Volume
	if action := freeRetained(v); action != nil {
		return action // or its deletion, which the event below names as a remedy, would never end
	}
	switch {
	case v.Claim != ClaimPending:
		return v.rest("the claim is not pending, and its PersistentVolume cannot be bound to it")
	case v.isReplaceable():
		return firstOf(v, followPolicy, reclaimVolume)
	case vol.Use == NeverBound && v.WhyRival != "":
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: reason.KeptByPolicy.After("%s; %s: ", vol.Why, v.WhyRival)}}
	case vol.Use == NeverBound:
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: reason.Retained.After("%s; ", vol.Why)}}
	default:
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: reason.Mismatched.After("%s; ", vol.Why)}}
	}
}

// isDeletedUnbound reports whether the PV was deleted before any claim was bound to it (StateDiscarded).
// No claim can be bound to it any more, and its volume may be half deleted, so its deletion
// continues whatever has become of the claim.
func (v View) isDeletedUnbound() bool {
	vol := v.Volume
	return vol.State > Foreign && vol.Terminating && vol.IsUnbound() && vol.PolicyDelete && (v.reclaimRun() != nil && v.IsDeleteBegun() || vol.Use == NeverBound) &&
		v.Claim != ClaimTerminating
}

// IsDeleteBegun reports whether a run may delete the volume of a PV that is being deleted, or may
// have deleted a part of it. No claim is to have that volume any more. A run that never started may
// have been cancelled since the PV was given to another claim. And one that still waits for its
// confirmation, beside a PV that was deleted by hand, has not begun.
func (v View) IsDeleteBegun() bool {
	return v.Volume.Terminating && slices.ContainsFunc(v.Runs, func(r Run) bool {
		if r.Verb != contract.Delete || r.Volume == "" || r.Volume != v.Volume.UID {
			return false
		}
		return r.State() < RunEnded && r.Confirmed ||
			r.State() >= RunEnded && r.Outcome.Verdict != contract.NotStarted
	})
}

// reclaimVolume deletes the volume of a released PV, then the PV.
func reclaimVolume(v View) Action {
	d, left := v.reclaimRun(), v.Delete.whyGivenUp()
	if isDone(d) {
		left = ""
	}
	switch {
	case !isDone(d) && !v.Volume.KeptUntil.IsZero(): // before its node is given up, too
		return Wait{Until: v.Volume.KeptUntil, Why: "the volume is kept, as its config says by keep-deleted"}
	case !isDone(d) && left == "":
		if v.Volume.Attached != nil {
			return v.reportProblem(*v.Volume.Attached)
		}
		return launchDelete(v, d, false)
	case v.Volume.Terminating && v.Volume.HasFinalizer:
		return v.freeReclaimed(left)
	case v.Volume.Terminating:
		return v.rest("the PV is being deleted")
	default:
		return DeletePV{}
	}
}

// freeReclaimed removes our finalizer from a PV whose volume is deleted, or left behind for a
// reason. As long as the outcome of a provision could not be written, the PV stays. Without it that
// Job says that the PV is to be created, and the Job of the delete may have expired by then
// (TestAnOutcomeThatIsTakenOffCreatesNoPVOfADeletedVolume).
func (v View) freeReclaimed(left string) Action {
	if slices.ContainsFunc(v.Runs, func(r Run) bool {
		return r.Held && r.Verb == contract.Provision && r.State() == RunEnded
	}) {
		return v.rest("the PV is the record of a provision whose outcome could not be written")
	}
	return SetFinalizer{Remove: true, LeftBehind: left}
}

// whyGivenUp returns why a volume is given up with its node, or nothing if it is not.
func (t Target) whyGivenUp() string {
	if t.Problem != nil || t.MissingNode == "" || t.NodeGonePolicy != config.ForgetVolume {
		return ""
	}
	return t.MissingNode + " no longer exists, and its config has node-gone: forget"
}
