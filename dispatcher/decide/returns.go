package decide

import (
	"fmt"
	"slices"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/backoff"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/notes"
)

// FullUntil returns until when a run's node counts as full. A run that said nothing of the kind returns the zero time.
func FullUntil(r Run) time.Time {
	if r.Verb != contract.Provision || r.Unfinished || r.Outcome.Verdict != contract.NoCapacity {
		return time.Time{}
	}
	return r.Outcome.Finished.Add(backoff.Full)
}

// foundFull returns the run that found a node without room for what the claim asks for now, or nil. That holds for as
// long as the node is not to be tried again.
func (v View) foundFull(node string) *Run {
	for i := range v.Runs {
		if r := &v.Runs[i]; r.Node == node && v.Now.Before(FullUntil(*r)) && !hasRequestChanged(r, v.Provision) {
			return r
		}
	}
	return nil
}

// cameBackTo returns the run that found the selected node without room, if the claim has come back there although
// another node may have room. Otherwise it returns nil: a full cluster is retried at the usual pace.
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

// nodeWithRoom returns a node that the scheduler may select instead and that no run has found full, or nothing.
func (v View) nodeWithRoom() string {
	i := slices.IndexFunc(v.Provision.OtherNodes, func(node string) bool { return v.foundFull(node) == nil })
	if i < 0 {
		return ""
	}
	return v.Provision.OtherNodes[i]
}

// returnClaim returns a claim to the scheduler after the run p, or without another run because its node is full.
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

// returnWithoutRun returns a claim to the scheduler that came back to a full node. The scheduler knows nothing of the
// storage, so it may select the full node any number of times: each further return waits twice as long, and the node is
// tried again when it is due.
func (v View) returnWithoutRun(p, full *Run) Action {
	due := p.Returns.At.Add(backoff.Exponential(p.Returns.Count))
	switch {
	case !due.Before(FullUntil(*full)):
		return nil
	case v.Now.Before(due):
		return Wait{Until: due, Why: "the scheduler has selected a full node again, and is asked again a little later"}
	default:
		return AnnounceReschedule{Run: *p, Returns: jobs.Returns{Count: p.Returns.Count + 1, At: v.Now}}
	}
}

// whyReturned returns why a claim returns to the scheduler: after its run or, if it came back to a full node, without
// another one.
func (v View) whyReturned(p, full *Run) string {
	if full == nil {
		return fmt.Sprintf("the node %s cannot serve it: %s (%s) of the Job %s", p.Node, p.Outcome.Verdict, p.Outcome, p.Name)
	}
	return fmt.Sprintf(notes.SelectedAgain, full.Node, v.Now.Sub(full.Outcome.Finished).Round(time.Second), full.Outcome.Verdict,
		full.Outcome, full.Name, v.nodeWithRoom(), p.Returns.Count)
}
