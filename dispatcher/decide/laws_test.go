package decide

import (
	"github.com/flex-provisioner/flex-provisioner/contract"
)

func cancelLaws(out *broken, v View, a Cancel) {
	t := a.Run.Trouble
	if t == nil {
		out.law("cancelled what makes progress", true)
		return
	}
	out.law("cancelled what has ended, or twice", !a.Run.Live || a.Run.Leaving)
	out.law("cancelled what may have started and is expected back", !t.Unstarted && !t.Lost && !t.Over)
	out.law("cancelled what is waited for", !t.Over && !pointless(v, a.Run))
	out.law("cancelled a delete that may start", !t.Over && a.Run.Verb == contract.Delete && !v.nowhere(a.Run))
}

func queueLaws(out *broken, v View, a Queue) {
	target := v.Clean
	switch a.Verb {
	case contract.Provision:
		target = v.Serve
		out.law("queued before the revision is stored", !target.Pinned)
	case contract.Expand:
		target = v.Expand
	case contract.Delete, contract.List:
	}
	out.law("queued in spite of a problem: it would hold up others", target.Problem != nil)
	out.law("queued with a slot in hand", target.Slot)
	out.law("queued in a backoff: it would hold up others", v.Now.Before(a.Since))
	for i := range v.Runs {
		r := &v.Runs[i]
		out.law("queued while a Job of it runs", r.Live)
	}
}

func releaseLaws(out *broken, v View, a Release) {
	last := v.Newest(a.Run.Verb)
	out.law("released a live Job", a.Run.Live)
	out.law("released an unsettled Job", a.Run.Settled == nil)
	if a.Run.Number == last.Number && a.Run.Verb == contract.Provision {
		out.law("lost the record of what may have been made", !v.Volume.Serves() && !v.madeNothing(last) && a.Left == "")
	}
}
