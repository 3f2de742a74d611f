package decide

import (
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/notes"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// launchWhenReady launches a run unless something is in the way: a problem, a retry that is not due, or no free slot.
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
			return ReportProblem{Problem: Problem{Reason: reason.Stalled, Note: notes.Stalled(last.Attempt, last.Verb == contract.Expand)}}
		}
		if await.Since = v.due(last, t); v.Now.Before(await.Since) {
			return Wait{Until: await.Since, Why: "the next attempt is not due yet"}
		}
	}
	if !t.HasSlot || await.Behind != nil {
		return await
	}
	// Not before: the dispatcher keeps each revision in memory for an hour at least, and a claim that waits sees every edit of its config.
	if launch.Verb == contract.Provision && !t.RevisionStored {
		return StoreRevision{}
	}
	return launch
}

// holdLaunches waits for what is in the way of any launch for the claim: a pod that may still run, or the pause after a run that was cancelled
// before it started.
func (v View) holdLaunches() Action {
	if r := v.unconfirmedRun(); r != nil {
		until := r.Outcome.MayRunUntil
		if r.LostNode != "" {
			until = v.Now.Add(recheckNode)
		}
		return ReportProblem{Problem: unconfirmedProblem(*r), Until: until}
	}
	if v.Now.Before(v.NotBefore) {
		return Wait{Until: v.NotBefore, Why: "the last run was cancelled before it started, a moment ago"}
	}
	return nil
}

// reportProblem reports what is in the way of a launch. It rechecks after a while if no change would enqueue the UID.
func (v View) reportProblem(p Problem) Action {
	if p.RetryAfter == 0 {
		return ReportProblem{Problem: p}
	}
	return ReportProblem{Problem: p, Until: v.Now.Add(p.RetryAfter)}
}
