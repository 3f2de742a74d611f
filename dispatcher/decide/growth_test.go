package decide

import (
	"fmt"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// everyGrowth calls f with every combination of the facts of a growth. The claim that a proven volume
// serves may be another than the UID's, which has gone then.
func everyGrowth(t *testing.T, f func(View)) {
	t.Helper()
	volumes, growths, expands, histories := servingVolumes(), growths(), expandTargets(), buildOnce(t, expandHistories)
	for _, claim := range []Claim{ClaimGone, ClaimBound} {
		for _, volume := range volumes {
			for _, growth := range growths {
				for _, expand := range expands {
					for _, runs := range histories {
						f(View{
							Now: now, Claim: claim, Volume: volume, Growth: growth, Expand: expand, Runs: runs,
							Clean: Target{Pinned: true, Slot: true, Serves: true},
						})
					}
				}
			}
		}
	}
}

// servingVolumes are proven: in use, released, or let go of; in use by somebody else when a phase lags.
func servingVolumes() []Volume {
	var out []Volume
	for _, v := range []Volume{{}, {Released: true}, {Released: true, Orphaned: true}} {
		v.Exists, v.UID = true, pvUID
		out = append(out, v)
		v.Reclaim, v.Held = true, true
		out = append(out, v)
		v.Leaving = true
		out = append(out, v)
	}
	return out
}

func growths() []Growth {
	out := []Growth{{Stage: GrowthAsked}, {Stage: GrowthBegun}, {Stage: GrowthRefused}}
	for _, node := range []NodeWork{NodeNothing, NodeKubelet, NodeByHand} {
		out = append(out, Growth{GrowthNone, node}, Growth{GrowthStored, node}, Growth{GrowthLeft, node})
	}
	return out
}

func expandTargets() []Target {
	return []Target{
		{Problem: &Problem{Reason: "ExpansionNotSupported"}},
		{Revision: "r1", Hash: "h1", Pinned: true, Slot: true, Serves: true},
		{Revision: "r1", Hash: "h1", Pinned: true, Serves: true, MaxAttempts: 2},
		{Revision: "r1", Hash: "h1", Pinned: true, Slot: true, Serves: true, MaxAttempts: 2},
		{Revision: "r1", Hash: "h2", Pinned: true, Slot: true, Serves: true, MaxAttempts: 2},
		{Revision: "r2", Hash: "h1", Pinned: true, Slot: true, Serves: true},
	}
}

// expandHistories: no run; one expand in every state, alone, after an older one, or beside a delete of
// the volume that has failed or runs.
func expandHistories() [][]Run {
	out := [][]Run{nil}
	older := settled(run(contract.Expand, 1), contract.TryAgain, time.Hour)
	failed := settled(run(contract.Delete, 1), contract.TryAgain, time.Hour)
	failed.Volume = pvUID
	deleting := failed
	deleting.Settled, deleting.Live = nil, true
	for _, e := range expandEnds() {
		out = append(out, []Run{e}, []Run{older, e})
		if e.Settled != nil && e.Held {
			out = append(out, []Run{e, failed}, []Run{e, deleting})
		}
	}
	return out
}

func expandEnds() []Run {
	var out []Run
	for _, e := range ends(run(contract.Expand, 2), []contract.Verdict{contract.Done, contract.BadRequest, contract.TryAgain, contract.Disrupted}) {
		if e.Shown && e.Held || e.Offers || e.Refused != "" {
			continue // nothing of an expand is shown, and none describes a PV
		}
		out = append(out, e)
		if !e.Live && e.Outcome.Verdict == contract.Done {
			e.Grew = true
			out = append(out, e)
			e.Short = true
			out = append(out, e)
		}
	}
	return out
}

// expandLaws: nothing grows that is deleted, or for nobody, or without its claim saying so.
func expandLaws(out *broken, v View) {
	e := v.Newest(contract.Expand)
	out.law("grew what is not there", !v.Volume.Proven())
	out.law("grew a volume that nobody uses", v.Volume.Released)
	out.law("grew for nobody, or to no larger size", !v.Growth.Stage.Wanted())
	out.law("grew before the claim said so", v.Growth.Stage != GrowthBegun)
	out.law("launched without a config", v.Expand.Problem != nil || !v.Expand.Serves)
	out.law("launched beyond max-parallel", !v.Expand.Slot)
	out.law("too soon", e != nil && v.Now.Before(due(e, v.Expand)))
	out.law("too often", e != nil && exhausted(e, v.Expand))
}

// growth tells whether an action writes of a growth.
func growth(action Action) bool {
	switch action.(type) {
	case Begin, Refuse, Grow, HandOver, Finish:
		return true
	case Wait, Tell, Pin, Queue, Launch, Announce, Reschedule, Cancel, Waive, LetGo, Write, Settle, Show, Release, Hold, Unhold, Withdraw, Remove:
	}
	return false
}

func growthLaws(out *broken, v View, action Action) {
	for i := range v.Runs {
		r := &v.Runs[i]
		out.law("wrote of a growth while a Job runs", r.Live || r.Settled == nil)
	}
	_, grow := action.(Grow)
	out.law("wrote on a claim that has gone", v.Volume.Released && !grow)
}

func beginLaws(out *broken, v View) {
	out.law("begun although something is in the way", v.Expand.Problem != nil || !v.Expand.Slot)
	out.law("begun twice, or for nobody", v.Growth.Stage != GrowthAsked && v.Growth.Stage != GrowthRefused)
}

func refuseLaws(out *broken, v View, a Refuse) {
	out.law("refused what the storage does not refuse", a.Run.Outcome.Verdict != contract.BadRequest || changed(&a.Run, v.Expand))
	out.law("refused twice, or nobody", v.Growth.Stage != GrowthAsked && v.Growth.Stage != GrowthBegun)
}

func finishLaws(out *broken, v View) {
	out.law("a claim that has not its size", v.Growth.Stage != GrowthStored && v.Growth.Stage != GrowthLeft)
	out.law("finished over a file system that is too small", v.Growth.Node != NodeNothing)
}

// grow writes the size of a run on the PV: the volume has what the claim asks for, if that was asked.
func (w *world) grow(r *Run) {
	r.Grew = false
	if g := &w.v.Growth; !r.Short && !changed(r, w.v.Expand) && g.Stage.Wanted() {
		g.Stage = GrowthStored
	}
}

// turnNode lets a kubelet grow a file system, or a person, who says so.
func (w *world) turnNode() bool {
	g := &w.v.Growth
	switch {
	case g.Stage == GrowthLeft && g.Node == NodeKubelet:
		*g = Growth{}
	case g.Stage == GrowthLeft && g.Node == NodeByHand:
		g.Node = NodeNothing
	case !w.v.Expand.Slot && w.v.Expand.Problem == nil:
		w.v.Expand.Slot = true
	default:
		return false
	}
	return true
}

// ungrown says what an end lacks of a growth.
func ungrown(v View) string {
	if v.Volume.Released || !v.Volume.Exists || v.Expand.Problem != nil {
		return ""
	}
	for i := range v.Runs {
		r := &v.Runs[i]
		switch {
		case r.Verb != contract.Expand:
		case exhausted(r, v.Expand):
			return ""
		case r.Held && v.Growth.Stage == GrowthNone:
			return "an expand is held for nothing"
		}
	}
	if v.Growth.Stage != GrowthNone {
		return "a claim that could have its size has it not"
	}
	return ""
}

// TestEveryStageOfAGrowthIsReached proves that the walk has not lost the facts of a growth.
func TestEveryStageOfAGrowthIsReached(t *testing.T) {
	seen := map[string]int{}
	everyGrowth(t, func(v View) {
		seen[fmt.Sprintf("%T", Decide(v))]++
	})
	for _, what := range []string{"decide.Begin", "decide.Refuse", "decide.Grow", "decide.HandOver", "decide.Finish", "decide.Launch"} {
		if seen[what] == 0 {
			t.Errorf("no view leads to: %s", what)
		}
	}
	t.Log(seen)
}
