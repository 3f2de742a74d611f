package decide

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// everyResize calls f with every combination of the facts of a resize. The claim that a proven
// volume is bound to may be another than the UID's, which no longer exists then.
func everyResize(t *testing.T, f func(View)) {
	t.Helper()
	volumes, resizes, expands, histories := provenVolumes(), []ResizeStage{ResizeNone, ResizeRequested, ResizeInProgress, ResizeInfeasible, ResizeGrown, ResizeStored, ResizeDone}, expandTargets(), buildOnce(t, expandHistories)
	for _, claim := range []Claim{ClaimGone, ClaimBound} {
		for _, volume := range volumes {
			for _, resize := range resizes {
				if volume.Use == Released && resize != ResizeNone && resize != ResizeGrown {
					continue // the claim that asked was deleted
				}
				for _, expand := range expands {
					for _, runs := range histories {
						if resize == ResizeGrown && !hasGrown(runs) {
							continue
						}
						f(View{
							Now: now, Claim: claim, Volume: volume, Resize: resize, Expand: expand, Runs: runs,
							Delete: Target{Revision: "r1", RevisionStored: true, HasSlot: true, Supported: true},
						})
					}
				}
			}
		}
	}
}

// provenVolumes returns volumes that are in use, released, or orphaned. One in use may be used by
// another claim, when its phase is not up to date.
func provenVolumes() []Volume {
	var out []Volume
	for _, v := range []Volume{{}, {Use: Released}} {
		v.State, v.UID = Fits, pvUID
		out = append(out, v)
		v.PolicyDelete, v.HasFinalizer = true, true
		out = append(out, v)
		v.Terminating = true
		out = append(out, v)
	}
	return out
}

// hasGrown reports whether the newest expand may have made the volume larger.
func hasGrown(runs []Run) bool {
	e := View{Runs: runs}.Newest(contract.Expand)
	return e != nil && !e.Unfinished && e.Outcome.Verdict == contract.Done
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

// expandHistories returns: no run; one expand in every state, alone, after an older one, or beside
// a delete of the volume that has failed or is unfinished.
func expandHistories() [][]Run {
	out := [][]Run{nil}
	older := recorded(run(contract.Expand, 1), contract.TryAgain, time.Hour)
	failed := recorded(run(contract.Delete, 1), contract.TryAgain, time.Hour)
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
	for _, e := range outcomes(run(contract.Expand, 2), []contract.Verdict{contract.Done, contract.BadRequest, contract.TryAgain, contract.Disrupted}) {
		if e.Published && e.Held || e.DescribesPV || e.WhyNoPV != "" {
			continue // no result of an expand is published, and none describes a PV
		}
		out = append(out, e)
		if !e.Unfinished && e.Outcome.Verdict == contract.Done {
			e.Hash, e.Outcome.Capacity = "2147483648", resource.NewQuantity(1<<30, resource.BinarySI) // asked for more
			out = append(out, e)
		}
	}
	return out
}

// expandLaws checks that a volume is expanded only while it is in use, and while its claim asks for
// it and says so.
func expandLaws(out *broken, v View) {
	e := v.Newest(contract.Expand)
	out.law("expanded a volume that is not proven", !v.Volume.Proven())
	out.law("expanded a released volume", v.Volume.Use == Released)
	out.law("expanded a volume without a larger request", !v.Resize.Wanted())
	out.law("expanded a volume before the claim's status says so", v.Resize != ResizeInProgress)
	out.law("launched without a config", v.Expand.Problem != nil || !v.Expand.Supported)
	out.law("launched beyond max-parallel", !v.Expand.HasSlot)
	out.law("launched before the retry is due", e != nil && v.Now.Before(v.dueAfter(e, v.Expand)))
	out.law("launched after the last attempt", e != nil && hasExhaustedAttempts(e, v.Expand))
}

// resizeLaws checks what is written of a resize.
func resizeLaws(out *broken, v View, a SetResizeStage) {
	for i := range v.Runs {
		r := &v.Runs[i]
		out.law("wrote of a resize while a run has no recorded outcome", !r.Gated && (r.Unfinished || r.Recorded == nil))
	}
	out.law("wrote on a claim that no longer exists", v.Volume.Use == Released && a.To != ResizeStored)
	switch a.To {
	case ResizeInProgress:
		inProgressLaws(out, v)
	case ResizeInfeasible:
		infeasibleLaws(out, v, a)
	case ResizeLeftToNode:
		out.law("left a resize to a node that has nothing to do", v.Resize != ResizeStored)
	case ResizeNone:
		resizedLaws(out, v)
	case ResizeStored:
		out.law("set a PV's capacity to what its volume does not have", v.Resize != ResizeGrown || a.Run.Outcome.Verdict != contract.Done)
	case ResizeRequested, ResizeGrown, ResizeDone:
		out.law("set a status that only others set", true)
	}
}

func inProgressLaws(out *broken, v View) {
	first, _ := v.gatedRuns()
	out.law("resize in progress although its run cannot be launched", v.Expand.Problem != nil || !v.Expand.HasSlot && first == nil)
	out.law("resize in progress twice, or without a request", v.Resize != ResizeRequested && v.Resize != ResizeInfeasible)
}

func infeasibleLaws(out *broken, v View, a SetResizeStage) {
	out.law("resize infeasible although the storage did not say so", !saysNotGrown(a.Run.Outcome.Verdict) || hasChanged(&a.Run, v.Expand))
	out.law("resize infeasible twice, or without a request", v.Resize != ResizeRequested && v.Resize != ResizeInProgress)
}

func resizedLaws(out *broken, v View) {
	out.law("resize done although the volume or its file system is too small", v.Resize != ResizeDone)
}

// An action that no view leads to would be missing from the walk.
func TestWalkReachesEveryStageOfAResize(t *testing.T) {
	seen := map[string]int{}
	everyResize(t, func(v View) {
		action := Decide(v)
		seen[fmt.Sprintf("%T", action)]++
		if a, set := action.(SetResizeStage); set {
			seen[fmt.Sprintf("%T %d", action, a.To)]++
		}
	})
	reached := []string{"decide.Launch"}
	for _, stage := range []ResizeStage{ResizeStored, ResizeInProgress, ResizeInfeasible, ResizeLeftToNode, ResizeNone} {
		reached = append(reached, fmt.Sprintf("%T %d", SetResizeStage{}, stage))
	}
	for _, what := range reached {
		if seen[what] == 0 {
			t.Errorf("no view leads to: %s", what)
		}
	}
	t.Log(seen)
}

// While no dispatcher ran, the pause after the last attempt has passed. The claim's status still says that
// the size was begun, which is the one to reach until it is infeasible, whatever the user requests.
func TestARefusedSizeIsPublishedAlsoLate(t *testing.T) {
	for _, at := range []time.Duration{time.Minute, 11 * time.Minute} {
		e := Run{Name: "expand"}
		e.Verb, e.Number, e.Attempt, e.Revision, e.UIDs = contract.Expand, 1, 1, "r1", []string{"uid"}
		e.Outcome.Verdict, e.Outcome.Finished, e.Created = contract.BadRequest, now.Add(-at), now.Add(-at)
		e.Recorded = &e.Outcome
		v := View{Now: now, Claim: ClaimBound, Runs: []Run{e}, Resize: ResizeInProgress, Volume: provenVolumes()[0]}
		v.Expand = Target{Revision: "r1", RevisionStored: true, HasSlot: true, Supported: true, MaxAttempts: 1}
		v.Delete = v.Expand
		if set, sets := Decide(v).(SetResizeStage); !sets || set.To != ResizeInfeasible {
			t.Errorf("%s after the end of the run: got %#v", at, Decide(v))
		}
	}
}
