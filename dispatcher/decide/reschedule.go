package decide

import (
	"fmt"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// rescheduling (Q, R): gives a claim whose node cannot serve it back to the scheduler, once what was made there has
// been undone. Nil: it stays where it is. The scheduler may choose the same node again; the run's Job tells that it
// was asked, so that the node is tried again at the usual pace, and the scheduler is asked once a run.
func rescheduleClaim(v View, p *Run) Action {
	if v.Provision.Problem != nil || !v.Provision.NodeSelected {
		return nil
	}
	gone := v.Provision.MissingNode != ""
	switch {
	case !gone && (p == nil || !isNodeUnsuitable(p, v.Provision)):
		return nil
	case p != nil && v.canUndo(p):
		return launchDelete(v, v.undoRun(p), true)
	case gone:
		return Reschedule{Why: v.Provision.MissingNode + " does not exist any more"}
	case p.Reschedule == RescheduleNone:
		return AnnounceReschedule{Run: *p}
	default:
		return Reschedule{Why: fmt.Sprintf("the node %s cannot serve it: %s (%s) of the Job %s", p.Node, p.Outcome.Verdict, p.Outcome, p.Name)}
	}
}

// nodeUnsuitable: the run's node had no room for the volume, or never took the run; nothing has changed since, and the
// scheduler has not been asked.
func isNodeUnsuitable(p *Run, t Target) bool {
	full := p.Outcome.Verdict == contract.NoCapacity
	never := p.Outcome.Verdict == contract.NotStarted && t.OnSelectedNode
	return (full || never) && p.Reschedule != RescheduleDone && !hasChanged(p, t) && !hasExhaustedAttempts(p, t)
}

// canUndo: the run may have made something, and that can be undone, or what stands in the way told.
func (v View) canUndo(p *Run) bool {
	return !v.madeNothing(p) && (v.Delete.Supported || v.Delete.Problem != nil) && v.Delete.whyGivenUp() == ""
}

// waitsForMissingNode: the run waits for a node that has gone.
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

// givenUp tells why a volume is given up with its node; empty: it is not.
func (t Target) whyGivenUp() string {
	if t.Problem != nil || t.MissingNode == "" || t.NodeGonePolicy != config.ForgetVolume {
		return ""
	}
	return t.MissingNode + " does not exist any more, and its config says node-gone: forget"
}

// withoutNode finds a way around a node that has gone: the run goes anywhere, or a problem stands in its way.
func (t Target) resolveMissingNode() (_ Target, anywhere bool) {
	switch {
	case t.Problem != nil || t.MissingNode == "":
		return t, false
	case t.NodeGonePolicy == config.AnyNode:
		return t, true
	}
	t.Problem = &Problem{Reason: reason.NodeGone, Note: fmt.Sprintf("%s does not exist any more, and the config says node-gone: %s. Remedy: bring the node "+
		"back; or write into the ConfigMap node-gone: any-node, if the storage can be reached from other nodes, or node-gone: forget, to give "+
		"up what is on it", t.MissingNode, t.NodeGonePolicy)}
	return t, false
}
