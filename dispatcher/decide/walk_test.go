package decide

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const pvUID = "pv-uid"

// verdicts are all verdicts on a run.
var verdicts = []contract.Verdict{
	contract.Done, contract.BadConfig, contract.BadRequest, contract.NoCapacity, contract.NoCredentials,
	contract.TryAgain, contract.Disrupted, contract.Unknown, contract.NotStarted, contract.Unlisted,
}

// every calls f with every combination of facts. How a claim would be provisioned is known only of
// a pending one, and its resize only of a bound one, which everyResize adds.
func every(t *testing.T, f func(View)) {
	t.Helper()
	everyCommon(t, f)
	everyRetained(t, f)
	everyMismatch(t, f)
	everyRival(t, f)
	everyAttached(t, f)
	everyUnclaimed(t, f)
	everyResize(t, f)
	everyBatched(t, f)
	everyNode(t, f)
	everyGated(t, f)
	everyProbe(t, f)
}

// buildOnce returns the lists of runs that the views of a walk share: building them for each view
// costs more than deciding. It fails the test when the walk has changed one of them.
func buildOnce(t *testing.T, lists func() [][]Run) [][]Run {
	t.Helper()
	out := lists()
	t.Cleanup(func() {
		if !reflect.DeepEqual(out, lists()) {
			t.Error("the walk has changed runs that its views share")
		}
	})
	return out
}

func everyCommon(t *testing.T, f func(View)) {
	t.Helper()
	volumes, deletions, histories := volumes(), deleteTargets(), buildOnce(t, histories)
	for _, claim := range []Claim{ClaimGone, ClaimTerminating, ClaimNotOurs, ClaimPending, ClaimBound, ClaimBoundElsewhere} {
		provisions := []Target{{}}
		if claim == ClaimPending {
			provisions = provisionTargets()
		}
		for _, volume := range volumes {
			for _, provision := range provisions {
				for _, deletion := range deletions {
					for _, runs := range histories {
						f(View{Now: now, Claim: claim, Volume: volume, Provision: provision, Delete: deletion, Runs: runs})
					}
				}
			}
		}
	}
}

// everyRetained adds what is known of the record of the run that wrote a PV with the policy Retain.
func everyRetained(t *testing.T, f func(View)) {
	t.Helper()
	histories := buildOnce(t, histories)
	refused := make([][]string, len(histories)) // that the records of all runs are released
	for i, runs := range histories {
		for _, r := range runs {
			refused[i] = append(refused[i], WriteOf(ReleaseRecord{Run: r}))
		}
	}
	for _, volume := range volumes() {
		if !volume.HasFinalizer || volume.PolicyDelete {
			continue
		}
		for _, claim := range []Claim{ClaimGone, ClaimTerminating, ClaimNotOurs, ClaimPending, ClaimBound, ClaimBoundElsewhere} {
			for i, runs := range histories {
				v := View{Now: now, Claim: claim, Volume: volume, Delete: deleteTargets()[1], Runs: runs}
				for _, v.Volume.RecordReleased = range []bool{false, true} {
					v.Refused = refused[i]
					f(v)
				}
				v.Refused = nil
				f(v)
			}
		}
	}
}

func volumes() []Volume {
	out := []Volume{
		{},
		{State: Unproven, UID: pvUID, Why: "it lacks our annotation", HasFinalizer: true, PolicyDelete: true},
		{State: Unproven, UID: pvUID, Why: "it lacks our annotation", HasFinalizer: true},
	}
	bools := []bool{false, true}
	for _, use := range []Use{InUse, Released} {
		for _, policyDelete := range bools {
			for _, finalizer := range bools {
				for _, terminating := range bools {
					out = append(out, Volume{State: Fits, Use: use, UID: pvUID, PolicyDelete: policyDelete, HasFinalizer: finalizer, Terminating: terminating})
				}
			}
		}
	}
	return out
}

func provisionTargets() []Target {
	return []Target{
		{Problem: &Problem{Reason: "WaitingForConfig"}},
		{Revision: "r1", Hash: "h1", Node: "n1", RevisionStored: true, HasSlot: true, Supported: true},
		{Revision: "r1", Hash: "h1", Node: "n1", Supported: true},
		{Revision: "r1", Hash: "h1", Node: "n1", HasSlot: true, Supported: true, MaxAttempts: 2},
		{Revision: "r1", Hash: "h2", Node: "n1", RevisionStored: true, HasSlot: true, Supported: true, MaxAttempts: 2},
		{Revision: "r2", Hash: "h1", Node: "n1", RevisionStored: true, HasSlot: true, Supported: true},
		{Revision: "r1", Hash: "h1", Node: "n2", RevisionStored: true, HasSlot: true, Supported: true},
	}
}

func deleteTargets() []Target {
	return []Target{
		{Problem: &Problem{Reason: "RevisionMissing"}},
		{Revision: "r1", RevisionStored: true, HasSlot: true, Supported: true},
		{Revision: "r1", RevisionStored: true, Supported: true},
		{Revision: "r1", RevisionStored: true, HasSlot: true},
	}
}

// histories returns lists of runs: none; one provision in every state, alone or after an older one
// whose record is still held; a provision that has ended with a delete after it, for an undo or for
// the PV; a delete alone.
func histories() [][]Run {
	out := [][]Run{nil}
	older := recorded(run(contract.Provision, 1), contract.TryAgain, time.Hour)
	for _, p := range outcomes(run(contract.Provision, 2), verdicts) {
		out = append(out, []Run{p})
		if p.Published {
			out = append(out, []Run{older, p})
		}
	}
	main := []contract.Verdict{contract.Done, contract.BadConfig, contract.TryAgain}
	for _, volume := range []string{"", pvUID} {
		d := run(contract.Delete, 1)
		d.After, d.Volume = 2, volume
		for _, d := range outcomes(d, main) {
			if d.Published && d.Held {
				continue // no result of a delete is published
			}
			out = append(out, []Run{d})
			for _, p := range outcomes(run(contract.Provision, 2), main) {
				if p.Published && p.Outcome.Finished.Equal(now) {
					out = append(out, []Run{p, d})
				}
			}
		}
	}
	return out
}

func run(verb contract.Verb, number int) Run {
	return Run{Name: jobs.Name(verb, "uid", number), Record: runs.Record{
		Verb: verb, UIDs: []string{"uid"}, Number: number, Revision: "r1", Held: true,
		Record: jobs.Record{Attempt: number, Hash: "h1", Node: "n1", NothingBefore: number == 1, Since: now.Add(-2 * time.Hour)},
	}}
}

func recorded(r Run, v contract.Verdict, ago time.Duration) Run {
	r.Outcome = runs.Outcome{Verdict: v, Finished: now.Add(-ago)}
	r.Recorded = &r.Outcome
	return r
}

// outcomes returns a run in every state: unfinished, stuck or not; ended now or an hour ago, with
// its outcome recorded or not, published or not, the first in the storage or not, its record held
// or released.
func outcomes(r Run, verdicts []contract.Verdict) []Run {
	unfinished := r
	unfinished.Unfinished = true
	out := []Run{unfinished}
	for _, stuck := range []Run{
		{Stuck: Problemf("Unschedulable", "no node fits its pod"), Idle: true},
		{Stuck: Problemf("CrashLoopBackOff", "its container has started before")},
		{Stuck: Problemf("WaitingForNode", "its pod was deleted by force"), Idle: true, Void: true},
	} {
		for _, terminating := range []bool{false, true} {
			next := unfinished
			next.Stuck, next.Terminating = stuck.Stuck, terminating
			next.Idle, next.Void = stuck.Idle && !next.Terminating, stuck.Void && !next.Terminating
			out = append(out, next)
		}
	}
	for _, v := range verdicts {
		unrecorded := recorded(r, v, 0)
		unrecorded.Recorded = nil
		out = append(out, unrecorded)
		unrecorded.DescribesPV = true
		out = append(out, unrecorded)
		unrecorded.WhyNoPV = "it describes nothing"
		out = append(out, unrecorded)
		if v == contract.Done {
			described := recorded(r, v, 0)
			described.DescribesPV, described.Described = true, "a PV"
			out = append(out, described)
			described.WhyNoPV = "the API server refuses it"
			out = append(out, described)
		}
		for _, ago := range []time.Duration{0, time.Hour} {
			s := recorded(r, v, ago)
			out = append(out, s)
			s.Published = true
			out = append(out, s)
			if v == contract.Disrupted && ago == 0 {
				mayRun := s
				mayRun.Outcome.MayRunUntil = now.Add(time.Minute)
				lost := mayRun
				lost.Outcome.MayRunUntil, lost.Outcome.Node, lost.LostNode = now.Add(-time.Minute), "n1", "n1"
				out = append(out, mayRun, lost)
			}
			s.NothingBefore = true
			out = append(out, s)
			s.Held = false
			out = append(out, s)
		}
	}
	return out
}

// describe formats a view for the message of a failure.
func describe(v View) string {
	text := fmt.Sprintf("claim %d, volume %+v, provision %+v, delete %+v, resize %+v, expand %+v", v.Claim, v.Volume, v.Provision, v.Delete, v.Resize, v.Expand)
	for _, r := range v.Runs {
		text += fmt.Sprintf("\n  %s unfinished=%t recorded=%t held=%t published=%t nothingBefore=%t after=%d volume=%q %s",
			r.Name, r.Unfinished, r.Recorded != nil, r.Held, r.Published, r.NothingBefore, r.After, r.Volume, r.Outcome.Verdict)
	}
	return text
}

// TestEveryViewKeepsTheLaws decides on every combination of facts and checks what must hold for
// each action.
func TestEveryViewKeepsTheLaws(t *testing.T) {
	views, launches := 0, 0
	var out broken
	every(t, func(v View) {
		views++
		action := Decide(v)
		if laws(&out, v, action); len(out) > 0 {
			t.Fatalf("%s\naction %#v\n%s", out, action, describe(v))
		}
		if _, ok := action.(Launch); ok {
			launches++
		}
	})
	if views < 2_250_000 || launches < 17_000 {
		t.Errorf("walked only %d views with %d launches: the walk lacks facts", views, launches)
	}
	t.Logf("%d views, %d launches", views, launches)
}
