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
							Now: now, Claim: claim, Volume: volume, Resize: growth, Expand: expand, Runs: runs,
							Delete: Target{RevisionStored: true, HasSlot: true, Supported: true},
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
		v.PolicyDelete, v.HasFinalizer = true, true
		out = append(out, v)
		v.Terminating = true
		out = append(out, v)
	}
	return out
}

func growths() []Resize {
	out := []Resize{{Stage: ResizeRequested}, {Stage: ResizeInProgress}, {Stage: ResizeInfeasible}}
	for _, node := range []NodeWork{NodeNothing, NodeKubelet, NodeByHand} {
		out = append(out, Resize{ResizeNone, node}, Resize{ResizeStored, node}, Resize{ResizeLeftToNode, node})
	}
	return out
}

func expandTargets() []Target {
	return []Target{
		{Problem: &Problem{Reason: "ExpansionNotSupported"}},
		{Revision: "r1", Hash: "h1", RevisionStored: true, HasSlot: true, Supported: true},
		{Revision: "r1", Hash: "h1", RevisionStored: true, Supported: true, MaxAttempts: 2},
		{Revision: "r1", Hash: "h1", RevisionStored: true, HasSlot: true, Supported: true, MaxAttempts: 2},
		{Revision: "r1", Hash: "h2", RevisionStored: true, HasSlot: true, Supported: true, MaxAttempts: 2},
		{Revision: "r2", Hash: "h1", RevisionStored: true, HasSlot: true, Supported: true},
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
	deleting.Recorded, deleting.Unfinished = nil, true
	for _, e := range expandEnds() {
		out = append(out, []Run{e}, []Run{older, e})
		if e.Recorded != nil && e.Held {
			out = append(out, []Run{e, failed}, []Run{e, deleting})
		}
	}
	return out
}

func expandEnds() []Run {
	var out []Run
	for _, e := range ends(run(contract.Expand, 2), []contract.Verdict{contract.Done, contract.BadRequest, contract.TryAgain, contract.Disrupted}) {
		if e.Published && e.Held || e.DescribesPV || e.Refused != "" {
			continue // nothing of an expand is shown, and none describes a PV
		}
		out = append(out, e)
		if !e.Unfinished && e.Outcome.Verdict == contract.Done {
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
	out.law("grew for nobody, or to no larger size", !v.Resize.Stage.Wanted())
	out.law("grew before the claim said so", v.Resize.Stage != ResizeInProgress)
	out.law("launched without a config", v.Expand.Problem != nil || !v.Expand.Supported)
	out.law("launched beyond max-parallel", !v.Expand.HasSlot)
	out.law("too soon", e != nil && v.Now.Before(due(e, v.Expand)))
	out.law("too often", e != nil && attemptsExhausted(e, v.Expand))
}

// growth tells whether an action writes of a growth.
func growth(action Action) bool {
	switch action.(type) {
	case SetPVCapacity, SetResizeStatus:
		return true
	case Wait, ReportProblem, StoreRevision, AwaitSlot, Launch, AnnounceReschedule, Reschedule, Cancel, Waive, RemovePodFinalizer, CreatePV, RecordOutcome, PublishResult, ReleaseRecord, AddFinalizer, RemoveFinalizer, DeleteUnboundPV, DeletePV:
	}
	return false
}

func growthLaws(out *broken, v View, action Action) {
	for i := range v.Runs {
		r := &v.Runs[i]
		out.law("wrote of a growth while a Job runs", r.Unfinished || r.Recorded == nil)
	}
	_, grow := action.(SetPVCapacity)
	out.law("wrote on a claim that has gone", v.Volume.Released && !grow)
}

func resizeStatusLaws(out *broken, v View, a SetResizeStatus) {
	switch a.To {
	case ResizeInProgress:
		beginLaws(out, v)
	case ResizeInfeasible:
		refuseLaws(out, v, a)
	case ResizeLeftToNode:
		out.law("handed over what is not there, or has nothing left to do", v.Resize.Stage != ResizeStored || v.Resize.Node == NodeNothing)
	case ResizeNone:
		finishLaws(out, v)
	case ResizeRequested, ResizeStored:
		out.law("a status that the claim has by itself", true)
	}
}

func beginLaws(out *broken, v View) {
	out.law("begun although something is in the way", v.Expand.Problem != nil || !v.Expand.HasSlot)
	out.law("begun twice, or for nobody", v.Resize.Stage != ResizeRequested && v.Resize.Stage != ResizeInfeasible)
}

func refuseLaws(out *broken, v View, a SetResizeStatus) {
	out.law("refused what the storage does not refuse", a.Run.Outcome.Verdict != contract.BadRequest || hasChanged(&a.Run, v.Expand))
	out.law("refused twice, or nobody", v.Resize.Stage != ResizeRequested && v.Resize.Stage != ResizeInProgress)
}

func finishLaws(out *broken, v View) {
	out.law("a claim that has not its size", v.Resize.Stage != ResizeStored && v.Resize.Stage != ResizeLeftToNode)
	out.law("finished over a file system that is too small", v.Resize.Node != NodeNothing)
}

// grow writes the size of a run on the PV: the volume has what the claim asks for, if that was asked.
func (w *world) grow(r *Run) {
	r.Grew = false
	if g := &w.v.Resize; !r.Short && !hasChanged(r, w.v.Expand) && g.Stage.Wanted() {
		g.Stage = ResizeStored
	}
}

// turnNode lets a kubelet grow a file system, or a person, who says so.
func (w *world) turnNode() bool {
	g := &w.v.Resize
	switch {
	case g.Stage == ResizeLeftToNode && g.Node == NodeKubelet:
		*g = Resize{}
	case g.Stage == ResizeLeftToNode && g.Node == NodeByHand:
		g.Node = NodeNothing
	case !w.v.Expand.HasSlot && w.v.Expand.Problem == nil:
		w.v.Expand.HasSlot = true
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
		case attemptsExhausted(r, v.Expand):
			return ""
		case r.Held && v.Resize.Stage == ResizeNone:
			return "an expand is held for nothing"
		}
	}
	if v.Resize.Stage != ResizeNone {
		return "a claim that could have its size has it not"
	}
	return ""
}

// TestEveryStageOfAGrowthIsReached proves that the walk has not lost the facts of a growth.
func TestEveryStageOfAGrowthIsReached(t *testing.T) {
	seen := map[string]int{}
	everyGrowth(t, func(v View) {
		action := Decide(v)
		seen[fmt.Sprintf("%T", action)]++
		if a, set := action.(SetResizeStatus); set {
			seen[fmt.Sprintf("%T %d", action, a.To)]++
		}
	})
	reached := []string{"decide.SetPVCapacity", "decide.Launch"}
	for _, stage := range []ResizeStage{ResizeInProgress, ResizeInfeasible, ResizeLeftToNode, ResizeNone} {
		reached = append(reached, fmt.Sprintf("%T %d", SetResizeStatus{}, stage))
	}
	for _, what := range reached {
		if seen[what] == 0 {
			t.Errorf("no view leads to: %s", what)
		}
	}
	t.Log(seen)
}
