package decide

import (
	"slices"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// everyGated calls f with every combination of the facts about a gated run: what it is for, what is
// in the way of its confirmation, which runs were before it, and what has become of the claim, the
// volume and the config since it was launched.
func everyGated(t *testing.T, f func(View)) {
	t.Helper()
	everyGatedProvision(t, f)
	everyGatedDelete(t, f)
	everyGatedExpand(t, f)
}

func everyGatedProvision(t *testing.T, f func(View)) {
	t.Helper()
	histories := buildOnce(t, func() [][]Run { return gatedHistories(gatedProvisions(), run(contract.Provision, 1)) })
	targets, released := append(provisionTargets(), anyNodeTarget()), Volume{State: Fits, Use: Released, UID: pvUID, PolicyDelete: true, HasFinalizer: true}
	unproven := Volume{State: Unproven, UID: pvUID, Why: "it lacks our annotation", HasFinalizer: true, PolicyDelete: true}
	for _, claim := range []Claim{ClaimGone, ClaimTerminating, ClaimNotOurs, ClaimPending, ClaimBound, ClaimBoundElsewhere} {
		provisions := targets
		if claim != ClaimPending {
			provisions = []Target{{}}
		}
		for _, volume := range []Volume{{}, {State: Fits, UID: pvUID, HasFinalizer: true, PolicyDelete: true}, released, unproven} {
			for _, provision := range provisions {
				for _, contested := range []bool{false, true} {
					for _, runs := range histories {
						f(View{Now: now, Claim: claim, Volume: volume, Provision: provision, Delete: deleteTargets()[1], Runs: runs, Contested: contested})
					}
				}
			}
		}
	}
}

func everyGatedDelete(t *testing.T, f func(View)) {
	t.Helper()
	made := run(contract.Provision, 2)
	histories := buildOnce(t, func() [][]Run { return gatedHistories(gatedDeletes(), made, run(contract.Delete, 0)) })
	moved := deleteTargets()[1]
	moved.Revision = "r2"
	for _, claim := range []Claim{ClaimGone, ClaimTerminating, ClaimPending, ClaimBound, ClaimBoundElsewhere} {
		for _, volume := range gatedVolumes(claim) {
			for _, deletion := range append(deleteTargets(), moved, anyNodeTarget()) {
				for _, runs := range histories {
					v := View{Now: now, Claim: claim, Volume: volume, Provision: provisionTargets()[1], Delete: deletion, Runs: runs}
					f(v)
					if deletion.Revision == "r1" && deletion.HasSlot {
						v.WhyRival = aRival
						f(v)
						v.WhyRival = ""
						if volume.Use == Released {
							v.Contested = true
							f(v)
							v.Volume.Attached = &Problem{Reason: "VolumeInUse"}
							f(v)
							v.Volume.KeptUntil = now.Add(time.Hour)
							f(v)
						}
					}
				}
			}
		}
	}
}

func everyGatedExpand(t *testing.T, f func(View)) {
	t.Helper()
	histories := buildOnce(t, func() [][]Run { return gatedHistories(gatedExpands(), run(contract.Expand, 1)) })
	for _, claim := range []Claim{ClaimGone, ClaimBound} {
		for _, volume := range provenVolumes() {
			for _, resize := range []ResizeStage{ResizeNone, ResizeRequested, ResizeInProgress, ResizeInfeasible, ResizeStored} {
				if volume.Use == Released && resize != ResizeNone {
					continue // the claim that asked was deleted
				}
				for _, expand := range append(expandTargets(), anyNodeTarget()) {
					for _, runs := range histories {
						f(View{Now: now, Claim: claim, Volume: volume, Resize: resize, Expand: expand, Delete: deleteTargets()[1], Runs: runs})
					}
				}
			}
		}
	}
}

// anyNodeTarget returns a target whose node no longer exists, so that its runs go to any node.
func anyNodeTarget() Target {
	return Target{
		Revision: "r1", Hash: "h1", Node: "n1", RevisionStored: true, HasSlot: true, Supported: true,
		MissingNode: "the volume's node n1", NodeGonePolicy: config.AnyNode,
	}
}

// gatedVolumes returns volumes that are to be deleted, and what may have become of them since: they
// are retained, handed over, bound or replaced, or their PV was deleted.
func gatedVolumes(claim Claim) []Volume {
	released := Volume{State: Fits, Use: Released, UID: pvUID, PolicyDelete: true, HasFinalizer: true}
	neverBound := Volume{State: Mismatched, Use: NeverBound, UID: pvUID, PolicyDelete: true, HasFinalizer: true, Why: "it is too small"}
	if claim.Abandoned() {
		neverBound.State, neverBound.Use, neverBound.Why = Fits, Unbound, ""
	}
	out := []Volume{{}, {State: Unproven, UID: pvUID, Why: "it lacks our annotation", HasFinalizer: true, PolicyDelete: true}}
	for _, to := range []func(*Volume){
		func(*Volume) {},
		func(v *Volume) { v.Terminating = true },
		func(v *Volume) { v.HasFinalizer = false },
		func(v *Volume) { v.PolicyDelete = false },
		func(v *Volume) { v.Use = InUse },
		func(v *Volume) { v.UID = "another" },
	} {
		for _, volume := range []Volume{released, neverBound} {
			to(&volume)
			out = append(out, volume)
		}
	}
	for _, to := range []func(*Volume){
		func(v *Volume) { v.Terminating, v.HasFinalizer = true, false },
		func(v *Volume) { v.PolicyDelete, v.Terminating = false, true },
		func(v *Volume) { v.State = Foreign },
		func(v *Volume) { v.State, v.Terminating = Foreign, true },
	} {
		volume := released
		to(&volume)
		out = append(out, volume)
	}
	return out
}

func gatedProvisions() []Run {
	return variants(gated(run(contract.Provision, 2)),
		func(r *Run) { r.Hash = "h2" }, func(r *Run) { r.Revision = "r2" }, func(r *Run) { r.Node = "n2" }, func(r *Run) { r.AnyNode = true }, func(r *Run) { r.NothingBefore = true })
}

func gatedDeletes() []Run {
	r := gated(run(contract.Delete, 1))
	r.Hash, r.Node, r.NothingBefore, r.After = "", "", false, 2
	out := variants(r, func(r *Run) { r.After = 1 }, func(r *Run) { r.Revision = "r2" }, func(r *Run) { r.AnyNode = true })
	r.Volume = pvUID
	return append(out, variants(r, func(r *Run) { r.Undo = true }, func(r *Run) { r.Volume = "another" }, func(r *Run) { r.Revision = "r2" }, func(r *Run) { r.AnyNode = true })...)
}

func gatedExpands() []Run {
	r := gated(run(contract.Expand, 2))
	r.Node = ""
	return variants(r, func(r *Run) { r.Hash = "h2" }, func(r *Run) { r.Revision = "r2" }, func(r *Run) { r.AnyNode = true })
}

// gated returns a run whose pod has just appeared.
func gated(r Run) Run {
	r.Unfinished, r.Unstarted, r.Gated = true, true, true
	r.Created, r.GatedSince = now.Add(-time.Second), now.Add(-time.Second)
	return r
}

// variants returns a run and, for each change, one that differs by it.
func variants(r Run, changes ...func(*Run)) []Run {
	out := []Run{r}
	for _, change := range changes {
		next := r
		change(&next)
		out = append(out, next)
	}
	return out
}

// gatedHistories returns lists of runs with each of the gated ones alone, and after the first or
// all of the earlier runs, which may have ended in many ways or may not have ended. The gated ones
// that are as expected come with everything that may be in their way, too.
func gatedHistories(gated []Run, earlier ...Run) [][]Run {
	befores := [][]Run{nil}
	for i := range earlier {
		for _, r := range earlierStates(earlier[i]) {
			switch {
			case i == 0:
				befores = append(befores, []Run{r})
			case r.Held:
				befores = append(befores, []Run{recorded(earlier[0], contract.TryAgain, time.Hour), r})
			}
		}
	}
	var out [][]Run
	for _, before := range befores {
		for _, g := range gated {
			all := [][]Run{{g}}
			isExpected := g.Revision == "r1" && g.Hash != "h2" && g.Node != "n2" && !g.AnyNode && g.Volume != "another" && g.After != 1
			isOver := !slices.ContainsFunc(before, func(r Run) bool { return r.Recorded == nil || !r.Outcome.MayRunUntil.IsZero() })
			if isExpected && isOver {
				all = obstacles(g)
			}
			for _, with := range all {
				out = append(out, append(slices.Clone(before), with...))
			}
		}
	}
	return out
}

func earlierStates(r Run) []Run {
	if r.Verb == contract.Delete {
		r.Volume = pvUID
	}
	unfinished, unrecorded, mayRun, released := r, recorded(r, contract.TryAgain, 0), recorded(r, contract.Disrupted, 0), recorded(r, contract.Done, 0)
	unfinished.Unfinished, unrecorded.Recorded = true, nil
	mayRun.Outcome.MayRunUntil = now.Add(time.Minute)
	released.Held, released.Published = false, true
	lost := mayRun
	lost.Outcome.MayRunUntil, lost.LostNode = now.Add(-time.Minute), "n1"
	out := []Run{unfinished, unrecorded, mayRun, lost, released}
	for _, verdict := range []contract.Verdict{contract.Done, contract.TryAgain, contract.BadConfig, contract.NotStarted} {
		ended := recorded(r, verdict, 0)
		ended.Published = verdict != contract.TryAgain
		out = append(out, ended)
	}
	return out
}

// obstacles returns a gated run with nothing and with each thing in the way of its confirmation,
// and with another gated run.
func obstacles(r Run) [][]Run {
	var out [][]Run
	for _, one := range variants(r,
		func(r *Run) { r.OtherPod = "a-pod" },
		func(r *Run) { r.OtherPod, r.GatedSince, r.RecheckAt = "a-pod", now.Add(-time.Hour), now.Add(time.Hour) },
		func(r *Run) { r.ForeignGate = true },
		func(r *Run) { r.ForeignGate, r.GatedSince = true, now.Add(-time.Hour) },
		func(r *Run) { r.Void = true },
		func(r *Run) { r.UIDs = []string{"uid", "other"} },
	) {
		out = append(out, []Run{one})
	}
	for _, second := range variants(r, func(r *Run) { r.Created = now }, func(r *Run) { r.Created = now.Add(-time.Hour) }) {
		second.Name, second.Number = second.Name+"0", second.Number*10
		out = append(out, []Run{r, second})
	}
	return out
}
