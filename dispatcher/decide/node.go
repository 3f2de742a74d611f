package decide

import (
	"fmt"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// elsewhere (Q, R): gives a claim whose node cannot serve it back to the scheduler, once what was made there has
// been undone. Nil: it stays where it is. The scheduler may choose the same node again; the run's Job tells that it
// was asked, so that the node is tried again at the usual pace, and the scheduler is asked once a run.
func elsewhere(v View, p *Run) Action {
	if v.Serve.Problem != nil || !v.Serve.Chosen {
		return nil
	}
	gone := v.Serve.Gone != ""
	switch {
	case !gone && (p == nil || !unsuited(p, v.Serve)):
		return nil
	case p != nil && v.undoable(p):
		return clean(v, v.undo(p), true)
	case gone:
		return Reschedule{Why: v.Serve.Gone + " does not exist any more"}
	case p.Returned == ReturnNone:
		return Announce{Run: *p}
	default:
		return Reschedule{Why: fmt.Sprintf("the node %s cannot serve it: %s (%s) of the Job %s", p.Node, p.Outcome.Verdict, p.Outcome, p.Name)}
	}
}

// unsuited: the run's node had no room for the volume, or never took the run; nothing has changed since, and the
// scheduler has not been asked.
func unsuited(p *Run, t Target) bool {
	full := p.Outcome.Verdict == contract.NoCapacity
	never := p.Outcome.Verdict == contract.NotStarted && t.OnNode
	return (full || never) && p.Returned != ReturnOver && !changed(p, t) && !exhausted(p, t)
}

// undoable: the run may have made something, and that can be undone, or what stands in the way told.
func (v View) undoable(p *Run) bool {
	return !v.madeNothing(p) && (v.Clean.Serves || v.Clean.Problem != nil) && v.Clean.forgotten() == ""
}

// nowhere: the run waits for a node that has gone.
func (v View) nowhere(r Run) bool {
	target := v.Clean
	switch r.Verb {
	case contract.Provision:
		target = v.Serve
	case contract.Expand:
		target = v.Expand
	case contract.Delete, contract.List:
	}
	return target.Problem == nil && target.Gone != "" && !r.Anywhere
}

// forgotten tells why a volume is given up with its node; empty: it is not.
func (t Target) forgotten() string {
	if t.Problem != nil || t.Gone == "" || t.IfGone != config.ForgetVolume {
		return ""
	}
	return t.Gone + " does not exist any more, and its config says node-gone: forget"
}

// around finds a way around a node that has gone: the run goes anywhere, or a problem stands in its way.
func (t Target) around() (_ Target, anywhere bool) {
	switch {
	case t.Problem != nil || t.Gone == "":
		return t, false
	case t.IfGone == config.AnyNode:
		return t, true
	}
	t.Problem = &Problem{Reason: "NodeGone", Note: fmt.Sprintf("%s does not exist any more, and the config says node-gone: %s. Remedy: bring the node "+
		"back; or write into the ConfigMap node-gone: any-node, if the storage can be reached from other nodes, or node-gone: forget, to give "+
		"up what is on it", t.Gone, t.IfGone)}
	return t, false
}
