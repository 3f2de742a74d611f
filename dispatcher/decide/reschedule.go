package decide

import (
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/notes"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// rescheduleClaim returns a claim to the scheduler if its node cannot serve it (announced, unscheduled), once what was
// made there has been undone. It returns nil if the claim keeps its node. The scheduler may select the same node
// again. The run's Job records that the scheduler was asked, so that the node is tried again at the usual pace, and
// the scheduler is asked only once a run, unless another node may have room.
func rescheduleClaim(v View, p *Run) Action {
	if v.Provision.Problem != nil || !v.Provision.NodeSelected {
		return nil
	}
	excluded, full := v.Provision.whyNodeExcluded(), v.cameBackTo(p)
	switch {
	case excluded == "" && full == nil && (p == nil || !isNodeUnsuitable(p, v.Provision)):
		return nil
	case v.canUndo(p):
		return launchDelete(v, v.undoRun(p), true)
	case v.Unasked:
		return v.rest("the PV controller may be about to write on the claim")
	case excluded != "":
		return v.returnUnserved(excluded)
	default:
		return v.returnClaim(p, full)
	}
}

// returnUnserved returns a claim to the scheduler whose node no run can serve. The scheduler may select that node again and again: each further return waits longer.
func (v View) returnUnserved(why string) Action {
	if v.Now.Before(v.NoReturnBefore) {
		return Wait{Until: v.NoReturnBefore, Why: "the claim was returned to the scheduler a moment ago"}
	}
	return Reschedule{Why: why}
}

// whyNodeExcluded returns why no run can make a volume on the selected node, or nothing.
func (t Target) whyNodeExcluded() string {
	if t.MissingNode != "" {
		return t.MissingNode + " does not exist any more"
	}
	return t.ExcludedNode
}

// isNodeUnsuitable reports whether a run's node had no room for the volume, or never started the run, while nothing
// has changed since and the scheduler has not been asked.
func isNodeUnsuitable(p *Run, t Target) bool {
	full := p.Outcome.Verdict == contract.NoCapacity
	never := p.Outcome.Verdict == contract.NotStarted && t.OnSelectedNode
	return (full || never) && p.Reschedule != RescheduleDone && !hasChanged(p, t) && !hasExhaustedAttempts(p, t)
}

// canUndo reports whether a run may have made something that can be undone. That holds even if a problem is in the
// way of the undo, since an event then reports it.
func (v View) canUndo(p *Run) bool {
	return p != nil && !v.madeNothing(p) && v.whyNotUndone(p) == "" && !isRetainedInDoubt(p)
}

// waitsForMissingNode reports whether a run waits for a node that no longer exists.
func (v View) waitsForMissingNode(r Run) bool {
	target := v.Delete
	switch r.Verb {
	case contract.Provision:
		target = v.Provision
	case contract.Expand:
		target = v.Expand
	case contract.Delete, contract.List:
	}
	return target.Problem == nil && target.MissingNode != "" && !r.AnyNode
}

// whyGivenUp returns why a volume is given up with its node, or nothing if it is not.
func (t Target) whyGivenUp() string {
	if t.Problem != nil || t.MissingNode == "" || t.NodeGonePolicy != config.ForgetVolume {
		return ""
	}
	return t.MissingNode + " does not exist any more, and its config says node-gone: forget"
}

// resolveMissingNode decides about a node that no longer exists, as the config says: the run goes to any node, or a
// problem is in the way.
func (t Target) resolveMissingNode() (_ Target, anywhere bool) {
	switch {
	case t.Problem != nil || t.MissingNode == "":
		return t, false
	case t.NodeGonePolicy == config.AnyNode:
		return t, true
	}
	t.Problem = &Problem{Reason: reason.NodeGone, Note: notes.MissingNode(t.MissingNode, string(t.NodeGonePolicy))}
	return t, false
}
