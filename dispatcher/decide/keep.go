package decide

import (
	"slices"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/notes"
)

// What keeps a volume, or gives it up: a person has changed the PV, or nothing can be done about it.

// isRescued reports whether the reason of a delete no longer exists: the volume is to be kept, is in use, or stands for another PV by now.
// Such a Job is cancelled as long as no container of it has started, with all that it was to delete: what its container is given cannot be
// changed any more. A pod that waited for its image once deleted a volume that had been set to Retain and bound again meanwhile.
func (v View) isRescued(r Run) bool {
	switch {
	case r.Verb != contract.Delete:
		return false
	case v.Rival.Exists():
		return true
	case r.IsUndo():
		return v.Volume.Exists || r.IsFix() && v.Claim != ClaimGone
	default:
		return !v.isToBeDeleted(r.Volume)
	}
}

// isToBeDeleted reports whether a UID is that of the PV whose volume is to be deleted, since its claim no longer needs it or can never be bound
// to it.
func (v View) isToBeDeleted(uid string) bool {
	vol := v.Volume
	if !vol.Exists || vol.UID != uid || !vol.PolicyDelete {
		return false
	}
	return vol.Unbound && (vol.Terminating || v.isReplaceable()) || vol.Released && vol.Orphaned
}

// isToBeCancelled reports whether a run that has not started is to be deleted with its pod: its reason no longer exists, or the Job is being deleted in
// the background, as kubectl does it, which would leave the gated pod until the Job's deadline.
func (v View) isToBeCancelled(r Run) bool {
	return r.PodStays || r.Unfinished && r.Unstarted && !r.Terminating && v.isRescued(r)
}

// releaseUnproven removes our finalizer from a PV that does not prove a provision: where its policy is Retain, and where it was deleted and
// no claim needs it. Without this neither of the remedies that events name would ever take it away.
func releaseUnproven(v View) Action {
	vol := v.Volume
	switch {
	case vol.Foreign || !vol.HasFinalizer || vol.Proven():
		return nil
	case !vol.PolicyDelete:
		return releaseRetained(v)
	case vol.Terminating && (vol.Unbound || vol.Released) && v.Claim.Abandoned() && v.reclaimRun() == nil: // no claim needs it, and no run deletes its volume
		return SetFinalizer{Remove: true, LeftBehind: v.whyUnprovenStays()}
	}
	return nil
}

// releaseRetained removes our finalizer from a PV with the policy Retain. The record of its provision goes before: an administrator may delete the
// PV to keep the volume, which was once undone then, although a claim had been bound to it.
func releaseRetained(v View) Action {
	switch p := v.NewestHeld(contract.Provision); {
	case !v.Volume.HasFinalizer || v.Volume.PolicyDelete || v.isUnreleased():
		return nil
	case p != nil && v.Volume.Unproven != "" && (v.Claim == ClaimBound || !v.Volume.Terminating):
		return nil // without the record nothing contradicts the PV, and its volume would be grown, or deleted once its policy is Delete, as the PV says
	case p != nil:
		return ReleaseRecord{Run: *p, LeftBehind: notes.LeftRetained}
	default:
		return v.unlessRefused(SetFinalizer{Remove: true, NeedsLive: !v.Volume.ReleasedHere})
	}
}

// whyUnprovenStays returns why the volume of an unproven PV stays in the storage, or nothing while its provision is on record: that is undone, or its own event
// says why it is not.
func (v View) whyUnprovenStays() string {
	if v.NewestHeld(contract.Provision) != nil {
		return ""
	}
	return v.Volume.Unproven
}

// keptDelete returns the newest delete if its record is held although its volume is kept or in use, else nil.
func (v View) keptDelete() *Run {
	if v.Volume.PolicyDelete && v.Volume.Released {
		return nil
	}
	return v.NewestHeld(contract.Delete)
}

// forgetRecord releases the records that an administrator has given up, by an annotation on the Job of the newest of them: what an older run
// may have made is the same volume.
func forgetRecord(v View) Action {
	if r := v.newest(func(r *Run) bool { return v.isRecord(r) && !r.Unfinished && (r.Forget || v.isForgotten(r)) }); r != nil {
		return ReleaseRecord{Run: *r, LeftBehind: notes.Forgotten}
	}
	return nil
}

// isForgotten reports whether an administrator has given up what a provision may have made, in the record of that run or of a later one.
func (v View) isForgotten(p *Run) bool {
	return p.Verb == contract.Provision && slices.ContainsFunc(v.Runs, func(r Run) bool { return r.Forget && r.Verb == p.Verb && r.Number >= p.Number })
}

// isRetainedInDoubt reports whether a run with policy Retain ended as if it had written the PV, so that an administrator may have deleted the PV to keep
// the volume. A PV that the dispatcher was to create, and that was never on record, has never been there.
func isRetainedInDoubt(r *Run) bool {
	return r.Retain && r.Outcome.Verdict == contract.Done && (!r.DescribesPV || r.Described != "")
}

// whyNotUndone returns why what a run may have made stays in the storage, or nothing: its node no longer exists and the config gives its
// volumes up, its image cannot delete, an administrator has given it up, or its record is released. Another claim may have been bound to the PV that
// stood for the volume then.
func (v View) whyNotUndone(p *Run) string {
	switch {
	case v.isForgotten(p):
		return notes.Forgotten
	case !v.isRecord(p) && !v.Volume.Exists:
		return notes.Released
	}
	if why := v.Delete.whyGivenUp(); why != "" {
		return why
	}
	if v.Delete.Problem == nil && !v.Delete.Supported {
		return "its image does not serve the verb delete"
	}
	return ""
}

// whyKept returns why the volume stays in the storage that a run was to delete, or nothing. If its PV does not exist any
// more, nothing will delete it.
func (v View) whyKept(r *Run) string {
	if r.Verb != contract.Delete || r.IsUndo() || isDone(r) || v.Volume.Exists && v.Volume.UID == r.Volume {
		return ""
	}
	return "its PersistentVolume was removed before its volume was deleted"
}
