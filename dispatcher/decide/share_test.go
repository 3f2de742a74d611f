package decide

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// everyShared calls f with every combination of facts about runs whose Job serves others, too.
func everyShared(t *testing.T, f func(View)) {
	t.Helper()
	cleans, histories := cleanTargets(), buildOnce(t, sharedHistories)
	for _, claim := range []Claim{ClaimGone, ClaimTerminating, ClaimPending, ClaimBound, ClaimBoundElsewhere} {
		serves := []Target{{}}
		if claim == ClaimPending {
			serves = targets()
		}
		for _, volume := range []Volume{{}, {Exists: true, UID: pvUID, HasFinalizer: true, PolicyDelete: true}} {
			if claim == ClaimBound && !volume.Exists {
				continue
			}
			for _, serve := range serves {
				for _, clean := range cleans {
					for _, runs := range histories {
						f(View{Now: now, Claim: claim, Volume: volume, Provision: serve, Delete: clean, Runs: runs})
					}
				}
			}
		}
	}
}

// sharedHistories are one run each.
func sharedHistories() [][]Run {
	var out [][]Run
	for _, r := range sharedRuns() {
		out = append(out, []Run{r})
	}
	return out
}

// sharedRuns are all states of a run, with all that can be known of the others.
func sharedRuns() []Run {
	var out []Run
	for _, r := range ends(run(contract.Provision, 1), verdicts) {
		switch {
		case r.DescribesPV:
			continue // whose PV the dispatcher writes runs alone
		case r.Unfinished:
			for _, waived := range []bool{false, true} {
				for _, want := range []bool{false, true} {
					r.Waived, r.Others = waived, runs.Others{Wanted: want, Unrecorded: true, Held: true}
					out = append(out, r)
				}
			}
		default:
			for _, others := range []runs.Others{{Wanted: true, Unrecorded: true, Held: true}, {Wanted: true, Held: true}} {
				r.Others, r.PodKept = others, r.Recorded != nil
				out = append(out, r)
			}
		}
	}
	return out
}

// shareLaws are what one claim owes the others of its Job.
func shareLaws(out *broken, v View, action Action) {
	switch a := action.(type) { //nolint:gochecksumtype // no other concerns them
	case Launch:
		out.law("shared an undo", a.MayBatch && a.Undo)
		out.law("shared what has failed before", a.MayBatch && tried(v, a))
	case Cancel:
		out.law("cancelled what a neighbour waits for", a.Run.Others.Wanted && !a.Run.Stuck.GiveUp)
	case Waive:
		out.law("waived what may have started", !a.Run.Unfinished || a.Run.Stuck == nil || !a.Run.Stuck.Unstarted && !a.Run.Stuck.NodeLost)
		out.law("waived twice", a.Run.Waived)
		out.law("waived what nobody else waits for", !a.Run.Others.Wanted)
	case RemovePodFinalizer:
		out.law("let a pod go that a neighbour has not read", a.Run.Others.Unrecorded)
	}
}

// tried: the newest run with the same aim has started.
func tried(v View, a Launch) bool {
	last := v.Newest(a.Verb)
	if a.Verb == contract.Delete {
		last = v.reclaim()
	}
	return last != nil && last.Outcome.Verdict != contract.NotStarted
}

// The walk sees each of the facts make a difference.
func TestItem10TheWalkCoversBatches(t *testing.T) {
	seen := map[string]int{}
	everyShared(t, func(v View) {
		switch a := Decide(v).(type) { //nolint:gochecksumtype // the others are not of interest
		case Waive:
			seen["waived"]++
		case Cancel:
			seen["cancelled"]++
		case RemovePodFinalizer:
			seen["let go"]++
		case Launch:
			seen["launched"]++
			if a.MayBatch {
				seen["shared"]++
			}
		}
	})
	for _, what := range []string{"waived", "cancelled", "let go", "launched", "shared"} {
		if seen[what] == 0 {
			t.Errorf("nothing was %s: %v", what, seen)
		}
	}
}

// Whoever a batch was silent about goes alone, soon, and uncounted.
func TestItem10WhoIsUnlistedGoesAloneSoon(t *testing.T) {
	r := settled(run(contract.Provision, 1), contract.Unlisted, time.Second)
	r.Published = true
	v := View{Now: now, Claim: ClaimPending, Provision: targets()[1], Delete: cleanTargets()[1], Runs: []Run{r}}
	v.Provision.MaxAttempts = 1
	want := Launch{Verb: contract.Provision, Number: 2, Attempt: 1}
	if got := Decide(v); got != want {
		t.Errorf("got %#v, want %#v", got, want)
	}
}
