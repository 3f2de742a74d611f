package decide

import (
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// mismatched (O): the claim waits, and the PV that was written for it can never be bound to it. Without the PV the
// next attempt may do better; with it that would only find it there.
func replaceVolume(v View) Action {
	vol := v.Volume
	released := vol.Released && vol.Orphaned
	switch {
	case v.Claim != ClaimPending:
		return Wait{Why: "the claim asks for nothing now, and its PersistentVolume serves nobody"}
	case vol.PolicyDelete && (vol.NeverBound || released):
		return deleteUnbound(v)
	case vol.NeverBound:
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: vol.Mismatch + "; its policy is Retain, so it is kept: " +
			"delete it with its volume, or set its policy to Delete and it is taken back"}}
	default:
		return ReportProblem{Problem: Problem{Reason: reason.VolumeInDoubt, Note: vol.Mismatch + "; it may be in use, so nothing is undone: " +
			"delete whatever uses it, or mend it by hand"}}
	}
}

// deletingUnbound: what is loose goes before its volume does, or it might be bound to a claim meanwhile.
func deleteUnbound(v View) Action {
	if action := followPolicy(v.Volume); action != nil {
		return action
	}
	if v.Volume.NeverBound && !v.Volume.Terminating {
		return DeleteUnboundPV{}
	}
	return reclaimVolume(v)
}

// deletedUnbound (P): nobody can be bound to the PV any more, and its volume may be half deleted. That goes on
// whatever has become of the claim.
func (v View) isDeletedUnbound() bool {
	return v.Volume.Exists && v.Volume.Terminating && v.Volume.Unbound && v.Volume.PolicyDelete && (v.reclaimRun() != nil || v.Volume.NeverBound) &&
		v.Claim != ClaimTerminating
}
