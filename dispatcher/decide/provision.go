package decide

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// provisionClaim launches a provision, or the next one. If the revision, the node or the request
// has changed, it first undoes what the earlier run may have made, since an image publishes what it
// finds of the claim. A claim that asked for a clone after its first attempt once got the empty
// volume of that attempt (TestEmptyVolumeOfAnEarlierAttemptIsNoClone).
func provisionClaim(v View) Action {
	p := v.Newest(contract.Provision)
	if action := rescheduleClaim(v, p); action != nil {
		return action
	}
	if p == nil {
		d := v.Newest(contract.Delete)
		return launchWhenReady(v, v.Provision, nil, Launch{Verb: contract.Provision, Number: v.nextNumber(), Attempt: 1, NothingBefore: d == nil || isDone(d)})
	}
	launch := Launch{Verb: contract.Provision, Number: v.nextNumber(), Attempt: nextAttempt(p), NothingBefore: v.madeNothing(p)}
	changed := v.Provision.Problem == nil && hasChanged(p, v.Provision)
	switch {
	case changed && v.canUndo(p):
		return launchDelete(v, v.undoRun(p), true)
	case launch.NothingBefore:
	case changed:
		launch.LeftBehind = cmp.Or(v.whyNotUndone(p), reason.Kept)
	default:
		launch.LeftBehind = v.whyReleased(p)
	}
	if hasRequestChanged(p, v.Provision) {
		launch.Attempt = 1
	}
	return launchWhenReady(v, v.Provision, p, launch)
}

// nextNumber returns the number of the next provision. A delete may have outlived the provision
// that it came after, and must not be mistaken for the undo of a new one of the same number.
func (v View) nextNumber() int {
	number := 0
	if p := v.Newest(contract.Provision); p != nil {
		number = p.Number
	}
	if d := v.Newest(contract.Delete); d != nil {
		number = max(number, d.After)
	}
	return number + 1
}

// rescheduleClaim returns a claim to the scheduler if its node cannot serve it (announced,
// unscheduled), once what was made there has been undone. It returns nil if the claim keeps its
// node. The scheduler may select the same node again. So the run's Job records that the scheduler
// was asked, and the node is tried again at the usual pace. The scheduler is asked once a run, and
// more often only if another node may have room.
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

// canUndo reports whether a run may have made something that can be undone. That holds even if a
// problem is in the way of the undo, since an event then reports it.
func (v View) canUndo(p *Run) bool {
	return p != nil && !v.madeNothing(p) && v.whyNotUndone(p) == "" && !isRetainedInDoubt(p)
}

// whyNodeExcluded returns why no run can make a volume on the selected node, or nothing.
func (t Target) whyNodeExcluded() string {
	if t.MissingNode != "" {
		return t.MissingNode + " no longer exists"
	}
	return t.ExcludedNode
}

// isNodeUnsuitable reports whether the claim is to leave the node of its run: the node had no room
// for the volume, never started the run, or is being drained. Nothing has changed since, and the
// scheduler has not been asked. A run tolerates the taint of a cordoned node: one that a drain had
// evicted was once made again there, and the claim's pod followed
// (TestAClaimLeavesANodeThatIsDrained).
func isNodeUnsuitable(p *Run, t Target) bool {
	full := p.Outcome.Verdict == contract.NoCapacity
	never := p.Outcome.Verdict == contract.NotStarted && t.OnSelectedNode
	drained := p.Outcome.Verdict == contract.Disrupted && t.OnSelectedNode && t.Cordoned
	return (full || never || drained) && p.Reschedule != RescheduleDone && !hasChanged(p, t) && !hasExhaustedAttempts(p, t)
}

// cameBackTo returns the run that found the selected node without room, if the claim has come back
// there although another node may have room. Otherwise it returns nil: a full cluster is retried at
// the usual pace.
func (v View) cameBackTo(p *Run) *Run {
	t := v.Provision
	if p == nil || hasExhaustedAttempts(p, t) || v.nodeWithRoom() == "" {
		return nil
	}
	if first := p.Returns.Count < 2; first && isNodeUnsuitable(p, t) {
		return nil // the return after the run itself
	}
	return v.foundFull(t.Node)
}

// foundFull returns the run that found a node without room for what the claim asks for now, or nil.
// That holds for as long as the node is not to be tried again.
func (v View) foundFull(node string) *Run {
	for i := range v.Runs {
		if r := &v.Runs[i]; r.Node == node && v.Now.Before(FullUntil(*r)) && !hasRequestChanged(r, v.Provision) {
			return r
		}
	}
	return nil
}

// FullUntil returns until when a run's node counts as full. A run that said nothing of the kind
// returns the zero time.
func FullUntil(r Run) time.Time {
	if r.Verb != contract.Provision || r.State() < RunEnded || r.Outcome.Verdict != contract.NoCapacity {
		return time.Time{}
	}
	return r.Outcome.Finished.Add(fullPause)
}

// nodeWithRoom returns a node that the scheduler may select instead and that no run has found full,
// or nothing.
func (v View) nodeWithRoom() string {
	i := slices.IndexFunc(v.Provision.OtherNodes, func(node string) bool { return v.foundFull(node) == nil })
	if i < 0 {
		return ""
	}
	return v.Provision.OtherNodes[i]
}

// returnUnserved returns a claim to the scheduler whose node no run can serve. The scheduler may
// select that node again and again: each further return waits longer.
func (v View) returnUnserved(why string) Action {
	if v.Now.Before(v.NoReturnBefore) {
		return Wait{Until: v.NoReturnBefore, Why: "the claim was just returned to the scheduler"}
	}
	return Reschedule{Why: why}
}

// returnClaim returns a claim to the scheduler after the run p, or without another run because its
// node is full.
func (v View) returnClaim(p, full *Run) Action {
	switch {
	case p.Reschedule == RescheduleAnnounced:
		return Reschedule{Why: v.whyReturned(p, full)}
	case full != nil:
		return v.returnWithoutRun(p, full)
	default:
		return AnnounceReschedule{Run: *p, Returns: jobs.Returns{Count: 1, At: v.Now}}
	}
}

// returnWithoutRun returns a claim to the scheduler that came back to a full node. The scheduler
// knows nothing of the storage, so it may select that node any number of times. Each further return
// waits twice as long, and the node is tried again when it is due.
func (v View) returnWithoutRun(p, full *Run) Action {
	due := p.Returns.At.Add(Exponential(p.Returns.Count))
	switch {
	case !due.Before(FullUntil(*full)):
		return nil
	case v.Now.Before(due):
		return Wait{Until: due, Why: "the scheduler selected a full node again; the claim is returned to it a little later"}
	default:
		return AnnounceReschedule{Run: *p, Returns: jobs.Returns{Count: p.Returns.Count + 1, At: v.Now}}
	}
}

// whyReturned returns why a claim returns to the scheduler: after its run or, if it came back to a
// full node, without another one.
func (v View) whyReturned(p, full *Run) string {
	if full == nil {
		return fmt.Sprintf("the node %s cannot provision the claim: %s (%s) of the Job %s", p.Node, p.Outcome.Verdict, p.Outcome, p.Name)
	}
	return fmt.Sprintf(reason.SelectedAgain, full.Node, v.Now.Sub(full.Outcome.Finished).Round(time.Second), full.Outcome.Verdict,
		full.Outcome, path.Join(full.JobNamespace(), full.Name), v.nodeWithRoom(), p.Returns.Count)
}
