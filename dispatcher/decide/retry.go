package decide

import (
	"fmt"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// How long to wait after a run, by its verdict.
const (
	firstBackoff  = time.Second
	lastBackoff   = 5 * time.Minute
	refusedPause  = 10 * time.Minute // the config or the claim must change; look again in case the storage did
	capacityPause = 5 * time.Minute  // somebody else's space or credentials must change
	uncounted     = 10 * time.Second // nobody's fault
)

// due is when a run may follow: at once when what was refused has changed. Where only the node has, after one that
// was full, it is at the pace of any failure: else a claim would race around a cluster that has no room.
func dueAfter(r *Run, t Target) time.Time {
	switch {
	case t.Problem != nil || !hasChanged(r, t):
		return r.Outcome.Finished.Add(pause(r))
	case r.Outcome.Verdict == contract.NoCapacity && !hasRequestChanged(r, t):
		return r.Outcome.Finished.Add(backoff(r.Attempt))
	default:
		return r.Outcome.Finished
	}
}

// due is when a run may follow the newest of its verb: not before a node where there was no room may have some.
func (v View) due(r *Run, t Target) time.Time {
	at := dueAfter(r, t)
	for _, q := range v.Runs {
		full := q.Verb == contract.Provision && r.Verb == q.Verb && q.Outcome.Verdict == contract.NoCapacity
		if again := q.Outcome.Finished.Add(capacityPause); full && t.Problem == nil && !hasChanged(&q, t) && again.After(at) {
			at = again
		}
	}
	return at
}

func pause(r *Run) time.Duration {
	switch r.Outcome.Verdict {
	case contract.BadConfig, contract.BadRequest:
		return refusedPause
	case contract.NoCapacity, contract.NoCredentials:
		return capacityPause
	case contract.Disrupted, contract.Unknown:
		return uncounted
	case contract.Unlisted:
		return firstBackoff // alone, so the next run will tell
	case contract.Done, contract.TryAgain, contract.NotStarted:
		return backoff(r.Attempt)
	default:
		return backoff(r.Attempt)
	}
}

// backoff doubles from one second to five minutes.
func backoff(attempt int) time.Duration {
	const doublings = 9 // 512 s is past the last
	return min(firstBackoff<<min(max(attempt-1, 0), doublings), lastBackoff)
}

// attempt is the count of the run that follows; what others did to a run does not count.
func nextAttempt(last *Run) int {
	switch {
	case last == nil:
		return 1
	case !last.Outcome.Verdict.Counted():
		return max(last.Attempt, 1)
	default:
		return last.Attempt + 1
	}
}

// mayBatch: no run has said anything of the request yet.
func mayBatch(launch Launch, last *Run) bool {
	return !launch.Undo && (last == nil || last.Outcome.Verdict == contract.NotStarted)
}

// targetMoved: the target is another config, or another node, than the run's.
func hasTargetChanged(r *Run, t Target) bool { return r.Revision != t.Revision || r.Node != t.Node }

// requestRenewed: the claim asks for something else than the run was to make, or another config serves it.
func hasRequestChanged(r *Run, t Target) bool { return r.Revision != t.Revision || r.Hash != t.Hash }

// hasChanged: what the run was asked to do is not what would be asked now. A delete asks the same always,
// and an expand goes to the volume's nodes, whichever the claim names.
func hasChanged(r *Run, t Target) bool {
	switch r.Verb {
	case contract.Provision:
		return hasTargetChanged(r, t) || hasRequestChanged(r, t)
	case contract.Expand:
		return hasRequestChanged(r, t)
	case contract.Delete, contract.List:
		return false
	default:
		return false
	}
}

// retry is when a run that failed will be followed by another, to be told to whoever asked; zero: none
// will be, or nobody asks any more.
func (v View) retryAt(r *Run) time.Time {
	t, asks := v.Provision, r.Verb == contract.Provision && v.Claim == ClaimPending
	if r.Verb == contract.Expand {
		t, asks = v.Expand, v.Resize.Stage.Wanted() && !v.Volume.Released
	}
	if !asks || hasExhaustedAttempts(r, t) {
		return time.Time{}
	}
	if at := v.due(r, t); at.After(r.Outcome.MayRunUntil) {
		return at
	}
	return r.Outcome.MayRunUntil
}

// runMayContinue is a run whose container may still be at work although nobody can tell: the one whose deadline is the
// last. Nil: there is none.
func (v View) unconfirmedRun() *Run {
	var last *Run
	for i := range v.Runs {
		if r := &v.Runs[i]; v.Now.Before(r.Outcome.MayRunUntil) && (last == nil || r.Outcome.MayRunUntil.After(last.Outcome.MayRunUntil)) {
			last = r
		}
	}
	return last
}

// mayStillRun tells why nothing is launched after a run whose pod was deleted by force.
func unconfirmedProblem(r Run) Problem {
	return Problem{Reason: reason.WaitingForNode, Note: fmt.Sprintf("the pod of the Job %s was deleted without its node's word that it has ended: "+
		"it may run until its deadline, %s, and nothing else is started for the claim before", r.Name, r.Outcome.MayRunUntil.UTC().Format(time.RFC3339))}
}

func hasExhaustedAttempts(r *Run, t Target) bool {
	return t.MaxAttempts > 0 && r.Outcome.Verdict.Counted() && r.Attempt >= t.MaxAttempts && !hasChanged(r, t)
}

func stalledProblem(r *Run) Problem {
	next := "when the claim's request or the config changes"
	if r.Verb == contract.Expand {
		next = "when the claim asks for more, or its PersistentVolume is moved to another config revision"
	}
	return Problem{
		Reason: reason.Stalled,
		Note:   fmt.Sprintf("no further attempt after %d, the config's max-attempts; it is tried again %s", r.Attempt, next),
	}
}
