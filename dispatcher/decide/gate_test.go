package decide

import (
	"github.com/flex-provisioner/flex-provisioner/contract"
)

// confirmLaws checks what must hold when a gated run is confirmed.
func confirmLaws(out *broken, v View, a Confirm) {
	out.law("confirmed a run that is not gated", !a.Run.Gated || !a.Run.Unfinished || a.Run.Terminating)
	out.law("confirmed a run while another pod of its claim may run", a.Run.OtherPod != "")
	out.law("confirmed a run before the gates of other controllers were removed", a.Run.ForeignGate)
	out.law("confirmed a run for another claim than its first", !a.Run.First)
	for i := range v.Runs {
		r := &v.Runs[i]
		if r.Name == a.Run.Name {
			continue
		}
		out.law("confirmed a run beside an unfinished one", r.Unfinished)
		out.law("confirmed a run while the outcome of another is not recorded", r.Recorded == nil)
		out.law("confirmed a run while a force-deleted pod may still run", v.Now.Before(r.Outcome.MayRunUntil))
	}
	if a.Run.Verb == contract.Delete {
		confirmDeleteLaws(out, v, a)
	}
}

// confirmDeleteLaws checks that a volume is deleted only if no claim is or can be bound to it. The confirmation of the delete of a PV deletes the PV.
func confirmDeleteLaws(out *broken, v View, a Confirm) {
	vol := v.Volume
	out.law("confirmed a delete of a volume that a rival PV may stand for", v.Rival != "")
	if a.Run.IsUndo() {
		out.law("confirmed an undo on facts of the caches", !a.NeedsLive)
		out.law("confirmed an undo although a PV exists, which may be in use", vol.Exists)
		return
	}
	out.law("confirmed a delete of a PV that was handed over on facts of the caches", vol.HandedOver && !a.NeedsLive)
	out.law("confirmed a delete of a volume that is to be kept", !mayDelete(v, a.Run))
	if !vol.Terminating && (!vol.Released || !vol.Orphaned) {
		deleteUnboundPVLaws(out, v)
	}
	out.law("deleted a PV without our finalizer, and with it the name of its volume", !vol.HasFinalizer && !vol.Terminating)
}

// mayDelete reports whether what a delete deletes is not to be kept, and no claim is or will be bound to it.
func mayDelete(v View, r Run) bool {
	vol := v.Volume
	switch {
	case v.Rival != "":
		return false
	case r.IsUndo():
		return !vol.Exists
	case !vol.Exists || vol.UID != r.Volume || !vol.PolicyDelete:
		return false
	case vol.Unbound && vol.Terminating, vol.Released && vol.Orphaned:
		return true
	default:
		return vol.Unbound && vol.NeverBound && vol.Mismatch != "" && v.Claim == ClaimPending
	}
}
