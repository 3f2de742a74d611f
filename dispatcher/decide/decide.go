// Package decide is the dispatcher's judgement: from all that is known of one claim's UID it names the
// one thing to do next. It is pure, so every combination of facts can be walked in a test.
//
// The states of a UID, by letter; the code cites them.
//
//	           launch            ends             settle, show
//	A untouched ────► B running ─────► C unsettled ───────────┬─► D proven ──► (claim lives on)
//	                    ▲                                     │      │ claim gone, policy Delete
//	                    │ due                                 │      ▼
//	                    └─────────── E failed ◄───────────────┤   F reclaiming ─► G deleted: remove the PV
//	                                    │ abandoned,          │      ▲   │ fails: again when due
//	                                    │ or another target   │      └───┘
//	                                    ▼                     │
//	                                 H undoing ───────────────┘ done: release the record,
//	                                                            or A again under the new target
//
// A PV that carries the UID and that the claim can never be bound to is no proof. Nobody was ever bound to it,
// so it is taken back, and E goes on:
//
//	C unsettled ───► E failed ───► O unfit ───────────► P withdrawn ───► F reclaiming ───► G deleted ───► E
//	                                 │       withdraw                                      let go of the PV
//	                                 └ in use by others, or retained: told, and left to an administrator
//
// A run in B that makes no progress is told on the claim. When nobody waits for it any more its Job is
// cancelled, and C reads from the pod, which is kept for that, whether its container was ever made. A pod that
// was deleted by force is not waited for, and may still run: nothing is launched from any state until its
// own deadline has passed. A Job may be the run of several UIDs, each with an outcome of its own; it is
// cancelled when all have waived it.
//
// A claim whose node the scheduler has chosen (WaitForFirstConsumer) goes back to it when the node has no room,
// never takes the run, or has gone:
//
//	E failed ─► H undoing ─► Q announced on the Job ─► R without a node ─► A (another node: at once; the same: when due)
//	A or E, its node has gone ─► H if need be ──────────────────┘
//
// F and H go around a node that has gone as the config says: they wait for it, run on any other, or give up
// what is there: the record is released, or the PV let go (G), and an event says so.
//
// A volume that is proven (D) and in use may be asked to grow:
//
//	           begin           launch             ends, settle, grow             finish
//	I asked ─────────► J begun ──────► K expanding ──────────────────► L stored ───────► D
//	    ▲  ▲                 ▲ due         │ fails                        │ hand over      ▲
//	    │  └ due, or         └─────────────┤                              ▼                │
//	    │    another size                  ▼ exit 65: refuse           M left to a node ───┘
//	    └───────────────────────────── N refused
package decide

import (
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// Decide names the one thing to do next.
func Decide(v View) Action {
	for _, rule := range []func(View) Action{awaitRuns, recordOutcome, removePodFinalizer, publishResult, releaseSuperseded} {
		if action := rule(v); action != nil {
			return action
		}
	}
	switch {
	case v.isDeletedUnbound():
		return reclaimVolume(v)
	case v.Volume.Mismatch != "":
		return replaceVolume(v)
	case v.Volume.Proven():
		return keepOrReclaim(v)
	case v.Claim.Abandoned():
		return undoOrRelease(v)
	case v.Claim == ClaimPending:
		return provisionClaim(v)
	default:
		return Wait{Why: "the claim asks for nothing now"}
	}
}

// unfinished (B): at most one unfinished Job per UID, whatever the verb.
func awaitRuns(v View) Action {
	for _, r := range v.Runs {
		switch {
		case r.Unfinished && r.Stuck != nil:
			return handleStuck(v, r)
		case r.Unfinished:
			return Wait{Until: r.RecheckAt, Why: "the Job " + r.Name + " runs"}
		}
	}
	return nil
}

func handleStuck(v View, r Run) Action {
	idle := r.Stuck.Unstarted || r.Stuck.NodeLost
	switch {
	case r.Terminating:
		return reportStuck(r)
	case r.Stuck.GiveUp:
		return Cancel{Run: r}
	case idle && isPointless(v, r):
		return cancelOrWaive(r)
	default:
		return reportStuck(r)
	}
}

func reportStuck(r Run) Action {
	return ReportProblem{Problem: Problem{Reason: r.Stuck.Reason, Note: "the Job " + r.Name + ": " + r.Stuck.Note}, Until: r.RecheckAt}
}

// abandonRun gives up a run: the last one who waits for its Job cancels it.
func cancelOrWaive(r Run) Action {
	switch {
	case !r.Others.Wanted:
		return Cancel{Run: r}
	case !r.Waived:
		return Waive{Run: r}
	default:
		return reportStuck(r)
	}
}

// isPointless: nobody waits for the run any more, or it would be asked otherwise now. One that runs is waited for
// all the same, since it may have made something. An undo by the same image, on the same nodes, would start no
// better.
func isPointless(v View, r Run) bool {
	switch {
	case v.waitsForMissingNode(r):
		return true
	case r.Verb == contract.Expand:
		return v.Volume.Released || !v.Resize.Stage.Wanted() || wouldDiffer(r, v.Expand)
	case r.Verb == contract.Provision:
		return v.Claim.Abandoned() || v.Claim == ClaimTerminating || v.Claim == ClaimPending && wouldDiffer(r, v.Provision)
	default:
		return false
	}
}

// wouldDiffer: the run would be launched, but not as it was.
func wouldDiffer(r Run, t Target) bool { return t.Problem == nil && hasChanged(&r, t) }

// unrecorded (C): what became of a run is written on its Job before anything hangs on it, since its pod
// may go at any time.
func recordOutcome(v View) Action {
	for _, r := range v.Runs {
		if r.Recorded == nil {
			if describesPV(v, r) {
				return CreatePV{Run: r}
			}
			success := hasSucceeded(v, r)
			action := RecordOutcome{Run: r, Success: success}
			if !success {
				action.Retry = v.retryAt(&r)
			}
			return action
		}
	}
	return nil
}

// describesPV: the PV is the dispatcher's to write, and the claim still wants it. The run is settled after
// that: the container's words are lost with its pod, and a PV that is there needs them no more.
func describesPV(v View, r Run) bool {
	return r.DescribesPV && r.Verb == contract.Provision && r.Outcome.Verdict == contract.Done && r.Refused == "" &&
		!v.Volume.Exists && v.Claim == ClaimPending
}

// hasSucceeded: for a provision the PV is the proof, whatever the exit code; otherwise the exit code is, if
// the volume is as large as it was to be.
func hasSucceeded(v View, r Run) bool {
	if r.Verb == contract.Provision {
		return v.Volume.Fits()
	}
	return r.Outcome.Verdict == contract.Done && !r.Short
}

// keptPod: a kept pod goes when its outcome is written, for every claim that it served.
func removePodFinalizer(v View) Action {
	for _, r := range v.Runs {
		if !r.Unfinished && r.Recorded != nil && r.PodKept && !r.Others.Unrecorded {
			return RemovePodFinalizer{Run: r}
		}
	}
	return nil
}

// unpublished: the claim shows the result of its newest provision as long as that is its record.
func publishResult(v View) Action {
	p := v.Newest(contract.Provision)
	if v.Claim == ClaimGone || p == nil || !p.Held || p.Published {
		return nil
	}
	return PublishResult{Run: *p, Success: v.Volume.Fits()}
}

// superseded: an older Job is released when its successor exists, and an undo, or the delete of a PV that has
// gone, when the provision does that came after it.
func releaseSuperseded(v View) Action {
	p := v.Newest(contract.Provision)
	for _, r := range v.Runs {
		last := v.Newest(r.Verb)
		undone := r.Verb == contract.Delete && (r.Volume == "" || r.Volume != v.Volume.UID) && p != nil && p.Number > r.After
		if r.Held && (last.Number > r.Number || undone) {
			return ReleaseRecord{Run: r}
		}
	}
	return nil
}

// proven (D): the record has done its work; the PV is what remains.
func keepOrReclaim(v View) Action {
	if p := v.Newest(contract.Provision); p != nil && p.Held {
		return ReleaseRecord{Run: *p}
	}
	for _, action := range []Action{followPolicy(v.Volume), resizeVolume(v)} {
		if action != nil {
			return action
		}
	}
	switch {
	case !v.Volume.PolicyDelete:
		return Wait{Why: "the volume is retained"}
	case !v.Volume.Released || !v.Volume.Orphaned:
		// A PV that was deleted while it is bound is still in use.
		return Wait{Why: "the volume is in use"}
	default:
		return reclaimVolume(v)
	}
}

// followPolicy: the finalizer follows the policy both ways when an administrator changes it. A PV that
// is already leaving takes no new one.
func followPolicy(vol Volume) Action {
	switch {
	case vol.HasFinalizer && !vol.PolicyDelete:
		return RemoveFinalizer{}
	case !vol.HasFinalizer && vol.PolicyDelete && !vol.Terminating:
		return AddFinalizer{}
	default:
		return nil
	}
}

// reclaiming (F, G).
func reclaimVolume(v View) Action {
	d, left := v.reclaimRun(), v.Delete.whyGivenUp()
	if isDone(d) {
		left = ""
	}
	switch {
	case !isDone(d) && left == "":
		return launchDelete(v, d, false)
	case v.Volume.Terminating && v.Volume.HasFinalizer:
		return RemoveFinalizer{LeftBehind: left}
	case v.Volume.Terminating:
		return Wait{Why: "the PV goes"}
	default:
		return DeletePV{}
	}
}

// abandoned (H): undo what a run may have made, then let go of the record. The provision's record goes
// first: without its undo's Job it would only be undone once more.
func undoOrRelease(v View) Action {
	if p := v.Newest(contract.Provision); p != nil && p.Held {
		return undoProvision(v, p)
	}
	for _, verb := range []contract.Verb{contract.Delete, contract.Expand} {
		if r := v.Newest(verb); r != nil && r.Held {
			return ReleaseRecord{Run: *r}
		}
	}
	return Wait{Why: "nothing is left of it"}
}

func undoProvision(v View, p *Run) Action {
	switch {
	case v.madeNothing(p):
		return ReleaseRecord{Run: *p}
	case v.Delete.whyGivenUp() != "":
		return ReleaseRecord{Run: *p, LeftBehind: v.Delete.whyGivenUp()}
	case v.Delete.Problem == nil && !v.Delete.Supported:
		return ReleaseRecord{Run: *p, LeftBehind: "its image does not serve the verb delete"}
	default:
		return launchDelete(v, v.undoRun(p), true)
	}
}

// deleteVolume launches a delete, again when due.
func launchDelete(v View, last *Run, undo bool) Action {
	number, after := 1, 0
	if d := v.Newest(contract.Delete); d != nil {
		number = d.Number + 1
	}
	if p := v.Newest(contract.Provision); p != nil {
		after = p.Number
	}
	target := v.Delete
	if target.Problem == nil && !target.Supported {
		target.Problem = &Problem{Reason: reason.DeleteNotSupported, Note: "the config under which the volume was made does not serve the verb delete: " +
			"name a revision that does in the PV's annotation " + contract.AnnRevision + ", or set the PV's policy to Retain"}
	}
	switch {
	case v.Rival != "":
		target.Problem = &Problem{Reason: reason.VolumeInDoubt, Note: v.Rival + ": it may be in use, so nothing is deleted"}
	case undo && v.Volume.Exists:
		target.Problem = &Problem{Reason: reason.VolumeInDoubt, Note: v.Volume.Unproven + ": it may be in use, so nothing is undone. " +
			"Delete the PersistentVolume, or complete it by hand"}
	}
	launch := Launch{Verb: contract.Delete, Number: number, Attempt: nextAttempt(last), After: after, Undo: undo}
	return launchWhenReady(v, target, last, launch)
}

// pending (A, E): provision, or provision again. Under another revision or on another node than before
// it first undoes what the earlier run may have made there.
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
	if v.Provision.Problem == nil && hasTargetChanged(p, v.Provision) {
		if v.canUndo(p) {
			return launchDelete(v, v.undoRun(p), true)
		}
		if !launch.NothingBefore {
			launch.LeftBehind = v.Delete.whyGivenUp()
		}
	}
	if hasRequestChanged(p, v.Provision) {
		launch.Attempt = 1
	}
	return launchWhenReady(v, v.Provision, p, launch)
}

// launchWhenReady launches unless something is in the way: a problem, the time, the class's other Jobs.
func launchWhenReady(v View, t Target, last *Run, launch Launch) Action {
	if t, launch.AnyNode = t.resolveMissingNode(); t.Problem != nil {
		return v.reportProblem(*t.Problem)
	}
	if r := v.unconfirmedRun(); r != nil {
		return ReportProblem{Problem: unconfirmedProblem(*r), Until: r.Outcome.MayRunUntil}
	}
	launch.MayBatch = mayBatch(launch, last)
	queue := AwaitSlot{Verb: launch.Verb, MayBatch: launch.MayBatch}
	if last != nil {
		if launch.Verb != contract.Delete && hasExhaustedAttempts(last, t) {
			return ReportProblem{Problem: stalledProblem(last)}
		}
		if queue.Since = v.due(last, t); v.Now.Before(queue.Since) {
			return Wait{Until: queue.Since, Why: "the next attempt is not due yet"}
		}
	}
	if launch.Verb == contract.Provision && !t.RevisionStored {
		return StoreRevision{}
	}
	if !t.HasSlot {
		return queue
	}
	return launch
}

// report says what stands in the way, and comes back where nothing else would bring it.
func (v View) reportProblem(p Problem) Action {
	if p.RetryAfter == 0 {
		return ReportProblem{Problem: p}
	}
	return ReportProblem{Problem: p, Until: v.Now.Add(p.RetryAfter)}
}
