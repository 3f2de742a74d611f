package decide

import (
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/backoff"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/notes"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// recheckNode is when to look again at a node that is lost.
const recheckNode = 30 * time.Second

// dueAfter returns when a run may follow another. If the request, the config or the node has changed, the longer pause
// after a refusal is not waited out, but the ordinary backoff is. Otherwise a claim that changes all the time, or every
// node of a full cluster, would be tried without a pause.
func (v View) dueAfter(r *Run, t Target) time.Time {
	failures := v.failuresUntil(r)
	after := backoff.After(r.Outcome.Verdict, failures, r.Number)
	if t.Problem == nil && hasChanged(r, t) {
		after = min(after, backoff.Exponential(failures))
	}
	return r.Outcome.Finished.Add(after)
}

// failuresUntil returns after how many failures the backoff of a run is. A change of the request begins a new count of
// attempts, and no new backoff: the Jobs of the earlier ones, which are kept for an hour, are counted as well.
func (v View) failuresUntil(r *Run) int {
	if r.Verb == contract.Delete {
		return r.Attempt // an undo after each of several attempts is not one that fails
	}
	failures := 0
	for _, q := range v.Runs {
		failed := q.Outcome.Verdict != contract.Done || q.Verb == contract.Provision // without its PV: otherwise none would follow
		if q.Verb == r.Verb && q.Number <= r.Number && !q.Unfinished && q.Outcome.Verdict.Counted() && failed {
			failures++
		}
	}
	return max(failures, r.Attempt)
}

// due returns when a run may follow the newest of its verb. It is not before the pause of a node that had no room,
// which an earlier run may have found.
func (v View) due(r *Run, t Target) time.Time {
	at := v.dueAfter(r, t)
	for _, q := range v.Runs {
		full := q.Verb == contract.Provision && r.Verb == q.Verb && q.Outcome.Verdict == contract.NoCapacity
		if again := q.Outcome.Finished.Add(backoff.Full); full && t.Problem == nil && !hasChanged(&q, t) && again.After(at) {
			at = again
		}
	}
	return at
}

// nextAttempt returns the attempt of the run that follows. A run that was disrupted from outside does not count.
func nextAttempt(last *Run) int {
	switch {
	case last == nil:
		return 1
	case !last.Outcome.Counted():
		return max(last.Attempt, 1)
	default:
		return last.Attempt + 1
	}
}

// mayBatch reports whether a run may share its Job: no run has reported anything about the request yet, and what an earlier one may have made for a claim is
// looked for alone.
func mayBatch(launch Launch, last *Run) bool {
	return !launch.Undo && !launch.NeverBound && (last == nil || last.Outcome.Verdict == contract.NotStarted) && (launch.Verb != contract.Provision || launch.NothingBefore)
}

// hasTargetChanged reports whether the target has another config or another node than the run.
func hasTargetChanged(r *Run, t Target) bool { return r.Revision != t.Revision || r.Node != t.Node }

// hasRequestChanged reports whether the claim asks for something else than the run was to make, or another config
// serves it.
func hasRequestChanged(r *Run, t Target) bool {
	return r.Revision != t.Revision || !jobs.SameRequest(r.Hash, t.Hash)
}

// hasChanged reports whether a run would be launched now with another request than it had. A delete never changes,
// and an expand goes to the volume's nodes, whichever node the claim names.
func hasChanged(r *Run, t Target) bool {
	switch r.Verb {
	case contract.Provision:
		return hasTargetChanged(r, t) || hasRequestChanged(r, t)
	case contract.Expand:
		return hasRequestChanged(r, t)
	default:
		return false
	}
}

// retryAt returns when another run will follow one that failed, which an event reports. It is zero if none will, or
// if no claim asks for it any more.
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

// unconfirmedRun returns the run whose container may still be running without a report from its node. Of several it is one whose node is lost,
// or else the one with the latest deadline. It returns nil if there is none.
func (v View) unconfirmedRun() *Run {
	var last *Run
	for i := range v.Runs {
		if r := &v.Runs[i]; v.mayStillRun(r) && (last == nil || mayRunLonger(r, last)) {
			last = r
		}
	}
	return last
}

// mayStillRun reports whether a container of a run that has ended may still be running: until its pod's own deadline, and longer while its node
// is lost.
func (v View) mayStillRun(r *Run) bool {
	until := r.Outcome.MayRunUntil
	return !until.IsZero() && (r.LostNode != "" || v.Now.Before(until))
}

func mayRunLonger(r, than *Run) bool {
	if (r.LostNode == "") != (than.LostNode == "") {
		return r.LostNode != ""
	}
	return r.Outcome.MayRunUntil.After(than.Outcome.MayRunUntil)
}

// unconfirmedProblem returns why nothing is launched after a run whose pod was deleted by force.
func unconfirmedProblem(r Run) Problem {
	if r.LostNode != "" {
		return lostNodeProblem("the pod of the Job "+r.Name, r.LostNode)
	}
	return Problem{Reason: reason.WaitingForNode, Note: notes.Unconfirmed(r.Name, r.Outcome.MayRunUntil)}
}

// lostNodeProblem returns why nothing is started while the node of a pod that was deleted by force is not Ready.
func lostNodeProblem(pod, node string) Problem {
	return Problem{Reason: reason.WaitingForNode, Note: notes.LostNode(pod, node)}
}

// hasExhaustedAttempts reports whether a run was the last that the config's max-attempts allows.
func hasExhaustedAttempts(r *Run, t Target) bool {
	return t.MaxAttempts > 0 && r.Outcome.Counted() && r.Attempt >= t.MaxAttempts && !hasChanged(r, t)
}
