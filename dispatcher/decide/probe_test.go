package decide

import (
	"fmt"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

var aProbe = Problemf("ErrImagePull", "the Job provision-other-1 cannot start")

// everyProbe calls f with every combination of facts about Jobs of which only one is kept.
func everyProbe(t *testing.T, f func(View)) {
	t.Helper()
	volumes := []Volume{{}, {State: Fits, Use: Released, UID: pvUID, PolicyDelete: true, HasFinalizer: true}}
	histories := buildOnce(t, probeHistories)
	for _, claim := range []Claim{ClaimGone, ClaimTerminating, ClaimPending, ClaimBoundElsewhere} {
		provisions := []Target{{}}
		if claim == ClaimPending {
			provisions = withProbe(provisionTargets())
		}
		for _, volume := range volumes {
			for _, provision := range provisions {
				for _, deletion := range withProbe(deleteTargets()) {
					for _, runs := range histories {
						f(View{Now: now, Claim: claim, Volume: volume, Provision: provision, Delete: deletion, Runs: runs})
					}
				}
			}
		}
	}
}

// withProbe returns targets, each also with a Job that cannot start.
func withProbe(targets []Target) []Target {
	out := targets
	for _, t := range targets {
		if t.Problem == nil {
			t.Probe = aProbe
			out = append(out, t)
		}
	}
	return out
}

// probeHistories returns lists of runs that cannot start, that were cancelled for it, or that ended
// otherwise.
func probeHistories() [][]Run {
	out := [][]Run{nil}
	failed := recorded(run(contract.Provision, 1), contract.TryAgain, time.Hour)
	for _, p := range heldUp(run(contract.Provision, 1)) {
		out = append(out, []Run{p})
	}
	for _, volume := range []string{"", pvUID} {
		d := run(contract.Delete, 1)
		d.After, d.Volume = 1, volume
		for _, d := range heldUp(d) {
			out = append(out, []Run{failed, d}, []Run{d})
		}
	}
	return out
}

// heldUp returns a run that cannot start, and what becomes of it.
func heldUp(r Run) []Run {
	var out []Run
	for _, surplus := range []bool{false, true} {
		for _, terminating := range []bool{false, true} {
			stuck := r
			stuck.Unfinished, stuck.Unstarted, stuck.Idle, stuck.Terminating, stuck.Void = true, true, !terminating, terminating, surplus && !terminating
			stuck.Stuck = Problemf("ErrImagePull", "its container does not start")
			out = append(out, stuck)
		}
	}
	for _, ago := range []time.Duration{0, time.Hour} {
		for _, reason := range []string{"", runs.Cancelled} {
			ended := recorded(r, contract.NotStarted, ago)
			ended.Outcome.Reason = reason
			ended.Recorded, ended.Published = &ended.Outcome, true
			out = append(out, ended)
		}
		out = append(out, recorded(r, contract.TryAgain, ago))
	}
	return out
}

// wasCancelled reports whether the newest run of a verb was cancelled before it started.
func wasCancelled(v View, verb contract.Verb) bool {
	r := v.Newest(verb)
	return r != nil && r.Outcome.Verdict == contract.NotStarted && r.Outcome.Reason == runs.Cancelled
}

// isHeldBack reports whether a launch repeats a run that was cancelled while the Job that was kept
// still cannot start.
func isHeldBack(v View, a Launch) bool {
	last, t := v.Newest(a.Verb), v.Delete
	switch {
	case a.Verb == contract.Provision:
		t = v.Provision
	case a.Undo || last != nil && last.Volume != v.Volume.UID:
		return false // the newest delete may be another volume's, or of an earlier provision
	}
	return t.Probe != nil && wasCancelled(v, a.Verb) && !hasChanged(last, t)
}

func TestOfStuckJobsAllButTheProbeAreCancelled(t *testing.T) {
	seen := map[string]int{}
	everyProbe(t, func(v View) {
		action := Decide(v)
		for _, r := range v.Runs {
			if _, cancels := action.(Cancel); r.Void && !cancels {
				t.Fatalf("decided %T, and another Job finds out when %s would start\n%s", action, r.Name, describe(v))
			}
		}
		switch a := action.(type) { //nolint:gochecksumtype // the others are seen elsewhere
		case Cancel:
			seen[fmt.Sprintf("Cancel %s surplus=%t", a.Run.Verb, a.Run.Void)]++
		case AwaitSlot:
			seen[fmt.Sprintf("AwaitSlot %s behind=%t", a.Verb, a.Behind != nil)]++
		case Launch:
			if v.Provision.Probe != nil || v.Delete.Probe != nil {
				seen[fmt.Sprintf("Launch %s", a.Verb)]++
			}
		case ReportProblem:
			seen["ReportProblem "+a.Problem.Reason]++
		}
	})
	for _, want := range []string{
		"Cancel provision surplus=true", "Cancel delete surplus=true", "AwaitSlot provision behind=true", "AwaitSlot delete behind=true",
		"AwaitSlot provision behind=false", "AwaitSlot delete behind=false", "Launch provision", "Launch delete", "ReportProblem ErrImagePull",
	} {
		if seen[want] == 0 {
			t.Errorf("no view leads to %s: %v", want, seen)
		}
	}
}

// A run that was cancelled before it started is launched again when the Job that is kept has
// started or has ended, when the claim asks for something else, and not before. It was no attempt.
func TestAClaimWaitsBehindTheProbe(t *testing.T) {
	cancelled := recorded(run(contract.Provision, 1), contract.NotStarted, time.Minute)
	cancelled.Published, cancelled.Outcome.Reason = true, runs.Cancelled
	never := cancelled
	never.Outcome.Reason = ""
	target := Target{Revision: "r1", Hash: "h1", Node: "n1", RevisionStored: true, HasSlot: true, Supported: true, MaxAttempts: 1}
	for name, test := range map[string]struct {
		run    Run
		probe  *Problem
		change func(*Target)
		want   string
	}{
		"the probe cannot start":                     {run: cancelled, probe: aProbe, want: "decide.AwaitSlot"},
		"the probe has started, or has ended":        {run: cancelled, want: "decide.Launch"},
		"the claim asks for something else":          {run: cancelled, probe: aProbe, change: func(t *Target) { t.Hash = "h2" }, want: "decide.Launch"},
		"its own run has waited for its timeout":     {run: never, probe: aProbe, change: func(t *Target) { t.MaxAttempts = 0 }, want: "decide.Launch"},
		"its own run has waited, and was no attempt": {run: never, want: "decide.Launch"},
	} {
		t.Run(name, func(t *testing.T) {
			provision := target
			if provision.Probe = test.probe; test.change != nil {
				test.change(&provision)
			}
			action := Decide(View{Now: now, Claim: ClaimPending, Provision: provision, Delete: target, Runs: []Run{test.run}})
			if got := fmt.Sprintf("%T", action); got != test.want {
				t.Errorf("decided %#v, want %s", action, test.want)
			}
			if launch, launches := action.(Launch); launches && test.run.Outcome.Reason == runs.Cancelled && launch.Attempt != 1 {
				t.Errorf("it is attempt %d", launch.Attempt)
			}
		})
	}
}
