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
)

// Decide names the one thing to do next.
func Decide(v View) Action {
	for _, rule := range []func(View) Action{running, unsettled, unread, unshown, superseded} {
		if action := rule(v); action != nil {
			return action
		}
	}
	switch {
	case v.withdrawn():
		return reclaiming(v)
	case v.Volume.Unfit != "":
		return unfit(v)
	case v.Volume.Proven():
		return proven(v)
	case v.Claim.Abandoned():
		return abandoned(v)
	case v.Claim == ClaimPending:
		return pending(v)
	default:
		return Wait{Why: "the claim asks for nothing now"}
	}
}

// running (B): at most one unfinished Job per UID, whatever the verb.
func running(v View) Action {
	for _, r := range v.Runs {
		switch {
		case r.Live && r.Trouble != nil:
			return troubled(v, r)
		case r.Live:
			return Wait{Until: r.Look, Why: "the Job " + r.Name + " runs"}
		}
	}
	return nil
}

func troubled(v View, r Run) Action {
	idle := r.Trouble.Unstarted || r.Trouble.Lost
	switch {
	case r.Leaving:
		return tellTrouble(r)
	case r.Trouble.Over:
		return Cancel{Run: r}
	case idle && pointless(v, r):
		return leave(r)
	default:
		return tellTrouble(r)
	}
}

func tellTrouble(r Run) Action {
	return Tell{Problem: Problem{Reason: r.Trouble.Reason, Note: "the Job " + r.Name + ": " + r.Trouble.Note}, Until: r.Look}
}

// leave gives up a run: the last one who waits for its Job cancels it.
func leave(r Run) Action {
	switch {
	case !r.Others.Want:
		return Cancel{Run: r}
	case !r.Waived:
		return Waive{Run: r}
	default:
		return tellTrouble(r)
	}
}

// pointless: nobody waits for the run any more, or it would be asked otherwise now. One that runs is waited for
// all the same, since it may have made something. An undo by the same image, on the same nodes, would start no
// better.
func pointless(v View, r Run) bool {
	switch {
	case v.nowhere(r):
		return true
	case r.Verb == contract.Expand:
		return v.Volume.Released || !v.Growth.Stage.Wanted() || otherwise(r, v.Expand)
	case r.Verb == contract.Provision:
		return v.Claim.Abandoned() || v.Claim == ClaimLeaving || v.Claim == ClaimPending && otherwise(r, v.Serve)
	default:
		return false
	}
}

// otherwise: the run would be launched, but not as it was.
func otherwise(r Run, t Target) bool { return t.Problem == nil && changed(&r, t) }

// unsettled (C): what became of a run is written on its Job before anything hangs on it, since its pod
// may go at any time.
func unsettled(v View) Action {
	for _, r := range v.Runs {
		if r.Settled == nil {
			if offered(v, r) {
				return Write{Run: r}
			}
			success := succeeded(v, r)
			action := Settle{Run: r, Success: success}
			if !success {
				action.Retry = v.retry(&r)
			}
			return action
		}
	}
	return nil
}

// offered: the PV is the dispatcher's to write, and the claim still wants it. The run is settled after
// that: the container's words are lost with its pod, and a PV that is there needs them no more.
func offered(v View, r Run) bool {
	return r.Offers && r.Verb == contract.Provision && r.Outcome.Verdict == contract.Done && r.Refused == "" &&
		!v.Volume.Exists && v.Claim == ClaimPending
}

// succeeded: for a provision the PV is the proof, whatever the exit code; otherwise the exit code is, if
// the volume is as large as it was to be.
func succeeded(v View, r Run) bool {
	if r.Verb == contract.Provision {
		return v.Volume.Serves()
	}
	return r.Outcome.Verdict == contract.Done && !r.Short
}

// unread: a kept pod goes when its outcome is written, for every claim that it served.
func unread(v View) Action {
	for _, r := range v.Runs {
		if !r.Live && r.Settled != nil && r.PodKept && !r.Others.Unsettled {
			return LetGo{Run: r}
		}
	}
	return nil
}

// unshown: the claim shows the result of its newest provision as long as that is its record.
func unshown(v View) Action {
	p := v.Newest(contract.Provision)
	if v.Claim == ClaimGone || p == nil || !p.Held || p.Shown {
		return nil
	}
	return Show{Run: *p, Success: v.Volume.Serves()}
}

// superseded: an older Job is released when its successor exists, and an undo, or the delete of a PV that has
// gone, when the provision does that came after it.
func superseded(v View) Action {
	p := v.Newest(contract.Provision)
	for _, r := range v.Runs {
		last := v.Newest(r.Verb)
		undone := r.Verb == contract.Delete && (r.Volume == "" || r.Volume != v.Volume.UID) && p != nil && p.Number > r.After
		if r.Held && (last.Number > r.Number || undone) {
			return Release{Run: r}
		}
	}
	return nil
}

// proven (D): the record has done its work; the PV is what remains.
func proven(v View) Action {
	if p := v.Newest(contract.Provision); p != nil && p.Held {
		return Release{Run: *p}
	}
	for _, action := range []Action{followPolicy(v.Volume), growing(v)} {
		if action != nil {
			return action
		}
	}
	switch {
	case !v.Volume.Reclaim:
		return Wait{Why: "the volume is retained"}
	case !v.Volume.Released || !v.Volume.Orphaned:
		// A PV that was deleted while it is bound is still in use.
		return Wait{Why: "the volume is in use"}
	default:
		return reclaiming(v)
	}
}

// followPolicy: the finalizer follows the policy both ways when an administrator changes it. A PV that
// is already leaving takes no new one.
func followPolicy(vol Volume) Action {
	switch {
	case vol.Held && !vol.Reclaim:
		return Unhold{}
	case !vol.Held && vol.Reclaim && !vol.Leaving:
		return Hold{}
	default:
		return nil
	}
}

// reclaiming (F, G).
func reclaiming(v View) Action {
	d, left := v.reclaim(), v.Clean.forgotten()
	if done(d) {
		left = ""
	}
	switch {
	case !done(d) && left == "":
		return clean(v, d, false)
	case v.Volume.Leaving && v.Volume.Held:
		return Unhold{Left: left}
	case v.Volume.Leaving:
		return Wait{Why: "the PV goes"}
	default:
		return Remove{}
	}
}

// abandoned (H): undo what a run may have made, then let go of the record. The provision's record goes
// first: without its undo's Job it would only be undone once more.
func abandoned(v View) Action {
	if p := v.Newest(contract.Provision); p != nil && p.Held {
		return undoing(v, p)
	}
	for _, verb := range []contract.Verb{contract.Delete, contract.Expand} {
		if r := v.Newest(verb); r != nil && r.Held {
			return Release{Run: *r}
		}
	}
	return Wait{Why: "nothing is left of it"}
}

func undoing(v View, p *Run) Action {
	switch {
	case v.madeNothing(p):
		return Release{Run: *p}
	case v.Clean.forgotten() != "":
		return Release{Run: *p, Left: v.Clean.forgotten()}
	case v.Clean.Problem == nil && !v.Clean.Serves:
		return Release{Run: *p, Left: "its image does not serve the verb delete"}
	default:
		return clean(v, v.undo(p), true)
	}
}

// clean launches a delete, again when due.
func clean(v View, last *Run, undo bool) Action {
	number, after := 1, 0
	if d := v.Newest(contract.Delete); d != nil {
		number = d.Number + 1
	}
	if p := v.Newest(contract.Provision); p != nil {
		after = p.Number
	}
	target := v.Clean
	if target.Problem == nil && !target.Serves {
		target.Problem = &Problem{Reason: "DeleteNotSupported", Note: "the config under which the volume was made does not serve the verb delete: " +
			"name a revision that does in the PV's annotation " + contract.AnnRevision + ", or set the PV's policy to Retain"}
	}
	switch {
	case v.Stray != "":
		target.Problem = &Problem{Reason: "VolumeInDoubt", Note: v.Stray + ": it may be in use, so nothing is deleted"}
	case undo && v.Volume.Exists:
		target.Problem = &Problem{Reason: "VolumeInDoubt", Note: v.Volume.Fault + ": it may be in use, so nothing is undone. " +
			"Delete the PersistentVolume, or complete it by hand"}
	}
	launch := Launch{Verb: contract.Delete, Number: number, Attempt: attempt(last), After: after, Undo: undo}
	return when(v, target, last, launch)
}

// pending (A, E): provision, or provision again. Under another revision or on another node than before
// it first undoes what the earlier run may have made there.
func pending(v View) Action {
	p := v.Newest(contract.Provision)
	if action := elsewhere(v, p); action != nil {
		return action
	}
	if p == nil {
		d := v.Newest(contract.Delete)
		return when(v, v.Serve, nil, Launch{Verb: contract.Provision, Number: v.unused(), Attempt: 1, Clean: d == nil || done(d)})
	}
	launch := Launch{Verb: contract.Provision, Number: v.unused(), Attempt: attempt(p), Clean: v.madeNothing(p)}
	if v.Serve.Problem == nil && moved(p, v.Serve) {
		if v.undoable(p) {
			return clean(v, v.undo(p), true)
		}
		if !launch.Clean {
			launch.Left = v.Clean.forgotten()
		}
	}
	if renewed(p, v.Serve) {
		launch.Attempt = 1
	}
	return when(v, v.Serve, p, launch)
}

// when launches unless something is in the way: a problem, the time, the class's other Jobs.
func when(v View, t Target, last *Run, launch Launch) Action {
	if t, launch.Anywhere = t.around(); t.Problem != nil {
		return v.tell(*t.Problem)
	}
	if r := v.unseen(); r != nil {
		return Tell{Problem: outrun(*r), Until: r.Outcome.Quiet}
	}
	launch.Shares = shares(launch, last)
	queue := Queue{Verb: launch.Verb, Shares: launch.Shares}
	if last != nil {
		if launch.Verb != contract.Delete && exhausted(last, t) {
			return Tell{Problem: stalled(last)}
		}
		if queue.Since = v.due(last, t); v.Now.Before(queue.Since) {
			return Wait{Until: queue.Since, Why: "the next attempt is not due yet"}
		}
	}
	if launch.Verb == contract.Provision && !t.Pinned {
		return Pin{}
	}
	if !t.Slot {
		return queue
	}
	return launch
}

// tell says what stands in the way, and comes back where nothing else would bring it.
func (v View) tell(p Problem) Action {
	if p.Again == 0 {
		return Tell{Problem: p}
	}
	return Tell{Problem: p, Until: v.Now.Add(p.Again)}
}
