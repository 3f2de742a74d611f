package decide

import (
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// everyBatched calls f with every combination of facts about runs of a batch.
func everyBatched(t *testing.T, f func(View)) {
	t.Helper()
	deletions, histories := deleteTargets(), buildOnce(t, batchedHistories)
	for _, claim := range []Claim{ClaimGone, ClaimTerminating, ClaimPending, ClaimBound, ClaimBoundElsewhere} {
		provisions := []Target{{}}
		if claim == ClaimPending {
			provisions = provisionTargets()
		}
		for _, volume := range []Volume{{}, {State: Fits, UID: pvUID, HasFinalizer: true, PolicyDelete: true}} {
			if claim == ClaimBound && !volume.Exists() {
				continue
			}
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

// batchedHistories returns histories of one run each.
func batchedHistories() [][]Run {
	var out [][]Run
	for _, r := range batchedRuns() {
		out = append(out, []Run{r})
	}
	return out
}

// batchedRuns returns a run in every state, with every state of the other claims of its batch.
func batchedRuns() []Run {
	var out []Run
	for _, r := range outcomes(run(contract.Provision, 1), verdicts) {
		switch {
		case r.DescribesPV:
			continue // a run whose PV the dispatcher creates has a batch-size of 1
		default:
			out = append(out, r)
		}
	}
	return out
}

// batchLaws checks what an action on one claim may do to the other claims of its batch.
func batchLaws(out *broken, v View, action Action) {
	switch a := action.(type) { //nolint:gochecksumtype // no other concerns them
	case Launch:
		out.law("batched an undo", a.MayBatch && a.Undo)
		out.law("batched a request that has failed before", a.MayBatch && hasStarted(v, a))
		out.law("batched a claim for which something may be in the storage", a.MayBatch && a.Verb == contract.Provision && !a.NothingBefore)
	case Cancel:
		out.law("cancelled a Job that another claim of its batch may need", !a.UnlessNeeded && !a.Run.Void && a.Run.Stuck != nil && a.Run.Verb != contract.Delete)
	}
}

// hasStarted reports whether the newest run for the same purpose may have started.
func hasStarted(v View, a Launch) bool {
	last := v.Newest(a.Verb)
	if a.Verb == contract.Delete {
		last = v.reclaimRun()
	}
	return last != nil && last.Outcome.Verdict != contract.NotStarted
}

// A fact that changes no action would be missing from the walk.
func TestWalkReachesEveryActionOnABatch(t *testing.T) {
	seen := map[string]int{}
	everyBatched(t, func(v View) {
		switch a := Decide(v).(type) { //nolint:gochecksumtype // the others are not of interest
		case Cancel:
			seen[map[bool]string{true: "not needed", false: "cancelled"}[a.UnlessNeeded]]++
		case Launch:
			seen["launched"]++
			if a.MayBatch {
				seen["batched"]++
			}
		}
	})
	for _, what := range []string{"not needed", "cancelled", "launched", "batched"} {
		if seen[what] == 0 {
			t.Errorf("no view leads to: %s; all: %v", what, seen)
		}
	}
}
