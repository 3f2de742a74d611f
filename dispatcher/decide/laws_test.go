package decide

import (
	"github.com/flex-provisioner/flex-provisioner/contract"
)

func cancelLaws(out *broken, v View, a Cancel) {
	t := a.Run.Stuck
	if t == nil {
		out.law("cancelled what makes progress", true)
		return
	}
	out.law("cancelled what has ended, or twice", !a.Run.Unfinished || a.Run.Terminating)
	out.law("cancelled what may have started and is expected back", !t.Unstarted && !t.NodeLost && !t.GiveUp)
	out.law("cancelled what is waited for", !t.GiveUp && !isPointless(v, a.Run))
	out.law("cancelled a delete that may start", !t.GiveUp && a.Run.Verb == contract.Delete && !v.waitsForMissingNode(a.Run))
}

func queueLaws(out *broken, v View, a AwaitSlot) {
	target := v.Delete
	switch a.Verb {
	case contract.Provision:
		target = v.Provision
		out.law("queued before the revision is stored", !target.RevisionStored)
	case contract.Expand:
		target = v.Expand
	case contract.Delete, contract.List:
	}
	out.law("queued in spite of a problem: it would hold up others", target.Problem != nil)
	out.law("queued with a slot in hand", target.HasSlot)
	out.law("queued in a backoff: it would hold up others", v.Now.Before(a.Since))
	for i := range v.Runs {
		r := &v.Runs[i]
		out.law("queued while a Job of it runs", r.Unfinished)
	}
}

func releaseLaws(out *broken, v View, a ReleaseRecord) {
	last := v.Newest(a.Run.Verb)
	out.law("released a live Job", a.Run.Unfinished)
	out.law("released an unsettled Job", a.Run.Recorded == nil)
	if a.Run.Number == last.Number && a.Run.Verb == contract.Provision {
		out.law("lost the record of what may have been made", !v.Volume.Fits() && !v.madeNothing(last) && a.LeftBehind == "")
	}
}
