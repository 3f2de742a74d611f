package decide

import (
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// A rival stops every delete of its UID, and that outlives the rival itself: an administrator who keeps a volume under another PV may delete
// that PV, too, and the volume stays, as Kubernetes says of the policy Retain.

// noteRival notes a rival on the newest provision whose record is held, then on the UID's PV. A volume that a done run has deleted needs no note.
// A rival that is to go is freed after that.
func noteRival(v View) Action {
	p, needed := v.NewestHeld(contract.Provision), v.Rival.Exists() && !isDone(v.reclaimRun())
	stays := needed && p != nil && v.IsRefused(NoteRival{Run: *p}) // where no note of it stands
	switch {
	case needed && p != nil && p.NotedRival == "" && !stays:
		return NoteRival{Run: *p}
	case needed && v.Volume.Proven() && v.Volume.NotedRival == "" && !v.IsRefused(NoteRival{}):
		return NoteRival{}
	case v.Misnamed && !stays:
		return v.unlessRefused(SetFinalizer{Remove: true, Misnamed: true})
	default:
		return nil
	}
}

// Problem is that nothing of the UID is deleted by itself, and what an administrator can do.
func (r Rival) Problem() *Problem {
	return &Problem{Reason: reason.VolumeInDoubt, Note: r.Why + ": it may be in use, so nothing is deleted. Remedy: " + r.Remedy}
}
