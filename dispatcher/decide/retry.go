package decide

import (
	"cmp"
	"fmt"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// launchDelete launches a delete, or launches it again when it is due.
func launchDelete(v View, last *Run, undo bool) Action {
	number, after := v.lastNumber(contract.Delete)+1, 0
	if p := v.Newest(contract.Provision); p != nil {
		after = p.Number
	}
	target := v.Delete
	if target.Problem == nil && !target.Supported {
		target.Problem = &Problem{Reason: reason.DeleteNotSupported, Note: reason.NotSupported}
	}
	switch {
	case v.WhyRival != "":
		target.Problem = v.rivalProblem()
	case undo && v.Volume.Exists():
		target.Problem = &Problem{Reason: reason.VolumeInDoubt, Note: reason.Unproven.After("%s: ", v.Volume.Why)}
	}
	launch := Launch{Verb: contract.Delete, Number: number, Attempt: nextAttempt(last), After: after, Undo: undo, NeverBound: !undo && v.isNeverBound(last)}
	launch.NeedsLive = undo && v.isUndoneReleased()
	return launchWhenReady(v, target, last, launch)
}

// rivalProblem is that nothing of the UID is deleted by itself, and what an administrator can do.
func (v View) rivalProblem() *Problem {
	note := reason.KeptByRival
	if p := v.NewestHeld(contract.Provision); p != nil {
		note = reason.KeptOnRecord(p.JobNamespace(), p.Name, p.ClaimUID, jobs.AnnForget+"="+p.ClaimUID)
	}
	return &Problem{Reason: reason.VolumeInDoubt, Note: note.After("%s: ", v.WhyRival)}
}

// lastNumber returns the highest number of the Jobs of a verb.
func (v View) lastNumber(verb contract.Verb) int {
	if r := v.Newest(verb); r != nil {
		return r.Number
	}
	return 0
}

// isUndoneReleased reports whether the record of the run that an undo undoes is released.
func (v View) isUndoneReleased() bool {
	made := v.MayHaveMade()
	return made != nil && !v.isRecord(made)
}

// MayHaveMade returns the newest provision that may have made something, or the newest of all, or
// nil.
func (v View) MayHaveMade() *Run {
	return cmp.Or(v.newestConfirmed(contract.Provision), v.Newest(contract.Provision))
}

// isNeverBound reports whether no claim was ever bound to the PV. That its claim was deleted since
// the PV was, after an earlier run, changes nothing.
func (v View) isNeverBound(last *Run) bool {
	return v.Volume.Use == NeverBound || v.Volume.Terminating && last != nil && last.IsNeverBound()
}

// launchWhenReady launches a run unless something is in the way: a problem, a retry that is not
// due, or no free slot.
func launchWhenReady(v View, t Target, last *Run, launch Launch) Action {
	if t, launch.AnyNode = t.resolveMissingNode(); t.Problem != nil {
		return v.reportProblem(*t.Problem)
	}
	if action := v.holdLaunches(); action != nil {
		return action
	}
	launch.MayBatch = mayBatch(launch, last)
	await := AwaitSlot{Verb: launch.Verb, MayBatch: launch.MayBatch, Behind: behindProbe(last, t)}
	if last != nil {
		if launch.Verb != contract.Delete && hasExhaustedAttempts(last, t) {
			return ReportProblem{Problem: *Problemf(reason.Stalled, "%s", reason.NoFurtherAttempt(last.Attempt, last.Verb == contract.Expand, last.JobNamespace(), last.Name, jobs.AnnRetry))}
		}
		if await.Due = v.due(last, t); v.Now.Before(await.Due) {
			return v.awaitDue(*last, launch, await.Due)
		}
	}
	if !t.mayLaunch(await) {
		return await
	}
	// Not before: the dispatcher keeps each revision in memory for an hour at least, and a claim
	// that waits sees every edit of its config.
	if launch.Verb == contract.Provision && !t.RevisionStored {
		return StoreRevision{}
	}
	return launch
}

// awaitDue waits until the next attempt is due. If the claim waits for an undo that fails, it
// reports that: the events of the undo are on its Job, in a namespace that the claim's user may not
// read.
func (v View) awaitDue(last Run, launch Launch, due time.Time) Action {
	if p := v.MayHaveMade(); launch.Undo && v.Claim == ClaimPending && p != nil && v.DeleteFails() {
		why := reason.UndoFails(last.Name, fmt.Sprintf("%s, %s", last.Outcome.Verdict, last.Outcome), p.JobNamespace(), p.Name, jobs.AnnForget+"="+p.ClaimUID)
		return ReportProblem{Problem: Problem{Reason: reason.UndoFailed, Note: why}, Until: due}
	}
	return Wait{Until: due, Why: "the next attempt is not due yet"}
}

// reportProblem reports what is in the way of a launch, when it is worth an event. It rechecks
// after a while if no change would enqueue the UID.
func (v View) reportProblem(p Problem) Action {
	switch {
	case v.Now.Before(p.From):
		return Wait{Until: p.From, Why: p.Note.String()}
	case p.RetryAfter == 0:
		return ReportProblem{Problem: p}
	default:
		return ReportProblem{Problem: p, Until: v.Now.Add(p.RetryAfter)}
	}
}

// rest waits until something changes. The success of a batch may still have to be written on the
// claim: then it waits until that time, for which neither a resize nor a change of policy waits. It
// reports a pod that its Job has left behind.
func (v View) rest(why string) Action {
	switch p := v.Newest(contract.Provision); {
	case p != nil && !p.Published && v.Volume.State == Fits && v.Claim == ClaimBound:
		return Wait{Until: p.ShownFrom(p.Outcome, v.Now), Why: why}
	case v.LeftPod != nil:
		return ReportProblem{Problem: *v.LeftPod}
	}
	return Wait{Why: why}
}

// resolveMissingNode decides about a node that no longer exists, as the config says: the run goes
// to any node, or a problem is in the way.
func (t Target) resolveMissingNode() (_ Target, anywhere bool) {
	switch {
	case t.Problem != nil || t.MissingNode == "":
		return t, false
	case t.NodeGonePolicy == config.AnyNode:
		return t, true
	}
	t.Problem = &Problem{Reason: reason.NodeGone, Note: reason.MissingNode(t.MissingNode, string(t.NodeGonePolicy))}
	return t, false
}

// holdLaunches waits for what is in the way of any launch for the claim. That is a pod that may
// still run, or the pause after a run that was cancelled before it started. A pod that ends by
// itself within seconds holds up the confirmation alone.
func (v View) holdLaunches() Action {
	if r := v.unreportedRun(); r != nil {
		until := r.Outcome.MayRunUntil
		if r.LostNode != "" {
			until = v.Now.Add(recheckNode)
		}
		return ReportProblem{Problem: unreportedProblem(*r), Until: until}
	}
	if v.Now.Before(v.NotBefore) {
		return Wait{Until: v.NotBefore, Why: "the last run was just cancelled before it started"}
	}
	if v.LeftPod != nil {
		return ReportProblem{Problem: *v.LeftPod, Until: v.Now.Add(recheckNode)}
	}
	return nil
}

// Of the Jobs that cannot start for the same reason, with the same config revision and on the same
// nodes, the oldest is kept: the probe. The others are cancelled, and their claims wait behind the
// probe until it has started or has ended. A reason that a kubelet gives is one for each node. A
// claim that has had no such Job is still launched. The reason may lie in the probe's own request,
// and no other claim is to wait for that.

// mayLaunch reports whether a run has a slot and waits behind no other.
func (t Target) mayLaunch(await AwaitSlot) bool { return t.HasSlot && await.Behind == nil }

// behindProbe returns why a run is not launched again that was cancelled before it started, or nil
// if nothing is in the way.
func behindProbe(last *Run, t Target) *Problem {
	if t.Probe == nil || last == nil || hasChanged(last, t) || last.Outcome.Verdict != contract.NotStarted || last.Outcome.Reason != runs.Cancelled {
		return nil
	}
	return t.Probe
}

// recheckNode is when to look again at a node that is lost.
const recheckNode = 30 * time.Second

// dueAfter returns when a run may follow another. It may at once if an administrator asks for it,
// or has changed the config, so that it has another revision. If the request or the node has
// changed, the ordinary backoff is waited out, and not the longer pause after a refusal. Without it
// a claim that changes all the time, or every node of a full cluster, would be tried without a
// pause.
func (v View) dueAfter(r *Run, t Target) time.Time {
	if t.Problem == nil && r.Revision != t.Revision || r.RetryNow {
		return r.Outcome.Finished
	}
	failures := v.failuresUntil(r)
	after := pauseAfter(r.Outcome.Verdict, failures, r.Number)
	if t.Problem == nil && hasChanged(r, t) {
		after = min(after, Exponential(failures))
	}
	return r.Outcome.Finished.Add(after)
}

// failuresUntil returns after how many failures the backoff of a run is. A change of the request
// begins a new count of attempts, and no new backoff. So the Jobs of earlier requests, which are
// kept for an hour, are counted as well. Another config revision begins both.
func (v View) failuresUntil(r *Run) int {
	if r.Verb == contract.Delete {
		return r.Attempt // an undo after each of several attempts is not one that fails
	}
	failures := 0
	for _, q := range v.Runs {
		failed := q.Outcome.Verdict != contract.Done || q.Verb == contract.Provision // without its PV: otherwise none would follow
		if q.Verb == r.Verb && q.Revision == r.Revision && q.Number <= r.Number && q.State() >= RunEnded && q.Outcome.Verdict.Counted() && failed {
			failures++
		}
	}
	return max(failures, r.Attempt)
}

// due returns when a run may follow the newest of its verb. It is not before the pause of a node
// that had no room, which an earlier run may have found.
func (v View) due(r *Run, t Target) time.Time {
	at := v.dueAfter(r, t)
	if r.RetryNow {
		return at
	}
	for _, q := range v.Runs {
		full := q.Verb == contract.Provision && r.Verb == q.Verb && q.Outcome.Verdict == contract.NoCapacity
		if again := q.Outcome.Finished.Add(fullPause); full && t.Problem == nil && !hasChanged(&q, t) && again.After(at) {
			at = again
		}
	}
	return at
}

// nextAttempt returns the attempt of the run that follows. A run that was disrupted from outside,
// or never started, does not count.
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

// mayBatch reports whether a run may share its Job: no run has reported anything about the request
// yet. What an earlier run may have made for a claim is looked for alone.
func mayBatch(launch Launch, last *Run) bool {
	return !launch.Undo && !launch.NeverBound && (last == nil || last.Outcome.Verdict == contract.NotStarted) && (launch.Verb != contract.Provision || launch.NothingBefore)
}

// retryAt returns when another run will follow one that failed, which an event reports. It is zero
// if none will, or if no claim asks for it any more.
func (v View) retryAt(r *Run) time.Time {
	t, asks := v.Provision, r.Verb == contract.Provision && v.Claim == ClaimPending
	if r.Verb == contract.Expand {
		t, asks = v.Expand, v.Resize.Wanted()
	}
	if !asks || hasExhaustedAttempts(r, t) {
		return time.Time{}
	}
	if at := v.due(r, t); at.After(r.Outcome.MayRunUntil) {
		return at
	}
	return r.Outcome.MayRunUntil
}

// hasExhaustedAttempts reports whether a run was the last that the config's max-attempts allows, and
// no administrator asks for another.
func hasExhaustedAttempts(r *Run, t Target) bool {
	return t.MaxAttempts > 0 && r.Outcome.Verdict.Counted() && r.Attempt >= t.MaxAttempts && !r.RetryNow && !hasChanged(r, t)
}

// Problemf returns a problem with a cause that is formatted as by fmt.Sprintf, and no remedy.
func Problemf(why, format string, args ...any) *Problem {
	return &Problem{Reason: why, Note: reason.Note{Cause: fmt.Sprintf(format, args...)}}
}

// Remedyf returns the problem with a remedy. What others have written may be in it as a quoted name
// only.
func (p *Problem) Remedyf(format string, args ...any) *Problem {
	p.Note.Remedy = fmt.Sprintf(format, args...)
	return p
}

// Pauses after a run, by its verdict.
const (
	firstPause     = time.Second
	lastPause      = 5 * time.Minute
	uncountedPause = 10 * time.Second // the run was disrupted from outside

	// longestPause is the longest pause: the config or the claim must change. It is retried in case
	// the storage did.
	longestPause = 10 * time.Minute
	// fullPause is for how long a node that had no room is not tried again. Space outside the
	// cluster must change.
	fullPause = 5 * time.Minute
)

// pauseAfter returns how long to wait after a run that ended with a verdict, if nothing has changed
// since. The count failures is that of failed runs of its verb, and number that of all.
func pauseAfter(verdict contract.Verdict, failures, number int) time.Duration {
	switch verdict {
	case contract.BadConfig, contract.BadRequest:
		return longestPause
	case contract.NoCapacity, contract.NoCredentials:
		return fullPause
	case contract.Disrupted, contract.Unknown:
		return uncountedPause
	case contract.Unlisted:
		return firstPause // the next run goes alone and finds out
	case contract.NotStarted:
		return Exponential(max(failures, number)) // it does not count as an attempt: one that is cancelled each time would be launched every second
	default:
		return Exponential(failures)
	}
}

// Exponential returns a pause that doubles with each attempt, from one second to five minutes.
func Exponential(attempt int) time.Duration {
	const doublings = 9 // 512 s is past the last
	return min(firstPause<<min(max(attempt-1, 0), doublings), lastPause)
}
