package decide

import (
	"github.com/flex-provisioner/flex-provisioner/dispatcher/notes"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// replaceVolume decides about a pending claim whose PV exists and can never be bound to it (mismatched). A PV that was never bound is deleted with its volume,
// and itself when that run is confirmed: no claim is bound to a terminating PV. Once it is deleted the next attempt may do better. As long as it exists, every
// attempt only finds it there.
func replaceVolume(v View) Action {
	vol := v.Volume
	if action := releaseRetained(v); action != nil {
		return action // or its deletion, which the event below names as a remedy, would never end
	}
	switch {
	case v.Claim != ClaimPending:
		return v.rest("the claim asks for nothing now, and its PersistentVolume serves nobody")
	case v.isReplaceable():
		return firstOf(v, followPolicy, reclaimVolume)
	case vol.NeverBound:
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: vol.Mismatch + "; " + notes.Retained}}
	default:
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: vol.Mismatch + "; " + notes.Mismatched}}
	}
}

// isReplaceable reports whether the PV of a pending claim is deleted with its volume, since that claim can never be bound to it and no other is.
func (v View) isReplaceable() bool {
	vol := v.Volume
	return v.Claim == ClaimPending && vol.Mismatch != "" && vol.PolicyDelete && (vol.NeverBound || vol.Released && vol.Orphaned)
}

// isNeverBound reports whether no claim was ever bound to the PV. That its claim was deleted since the PV was, after an earlier run, changes nothing.
func (v View) isNeverBound(last *Run) bool {
	return v.Volume.NeverBound || v.Volume.Terminating && last != nil && last.NeverBound
}

// isDeletedUnbound reports whether the PV was deleted before any claim was bound to it (unbound). No claim can be
// bound to it any more, and its volume may be half deleted, so its deletion continues whatever has become of the
// claim.
func (v View) isDeletedUnbound() bool {
	return v.Volume.Exists && v.Volume.Terminating && v.Volume.Unbound && v.Volume.PolicyDelete && (v.reclaimRun() != nil || v.Volume.NeverBound) &&
		v.Claim != ClaimTerminating
}

// reportUnclaimed waits, or reports a PV that would be deleted with its volume if its claimRef said that its claim was deleted.
func (v View) reportUnclaimed(why string) Action {
	vol := v.Volume
	switch {
	case !v.Claim.Abandoned() || !vol.HasFinalizer || vol.Foreign:
		return v.rest(why)
	case vol.Unclaimed != "":
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: vol.Unclaimed + ", " + notes.Unclaimed}}
	case vol.Unproven != "" && vol.Released:
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: vol.Unproven + ": " + notes.Unproven}}
	default:
		return v.rest(why)
	}
}
