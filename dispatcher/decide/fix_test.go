package decide

import (
	"reflect"
	"slices"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// everyFix calls f with every combination of the facts about a delete that an administrator's audit has made: how far it is, what is in its way, what other
// runs the UID has, and what has become of claim, volume and config since the audit has looked.
func everyFix(t *testing.T, f func(View)) {
	t.Helper()
	histories := buildOnce(t, fixHistories)
	released := Volume{State: Fits, Use: Released, UID: pvUID, PolicyDelete: true, HasFinalizer: true}
	unproven := Volume{State: Unproven, UID: pvUID, Why: "it lacks our annotation", HasFinalizer: true, PolicyDelete: true}
	bound, terminating := released, released
	bound.Use, terminating.Terminating = InUse, true
	retained := bound
	retained.PolicyDelete, retained.HasFinalizer = false, false
	for _, claim := range []Claim{ClaimGone, ClaimTerminating, ClaimNotOurs, ClaimPending, ClaimBound, ClaimBoundElsewhere} {
		provision := Target{}
		if claim == ClaimPending {
			provision = provisionTargets()[1]
		}
		for _, volume := range []Volume{{}, bound, retained, released, terminating, unproven} {
			for i, config := range fixTargets() {
				if i > 0 && (claim != ClaimGone || volume.Exists()) {
					break // it is not asked for
				}
				for _, runs := range histories {
					v := View{Now: now, Claim: claim, Volume: volume, Provision: provision, Delete: deleteTargets()[1], Audit: config, Runs: runs}
					f(v)
					v.Rival = aRival
					f(v)
				}
			}
		}
	}
}

func fixTargets() []Target {
	return []Target{{Revision: "r1", Supported: true}, {Revision: "r2", Supported: true}, {Revision: "r1"}, {Problem: &Problem{Note: "no config"}}}
}

// fixHistories returns lists of runs with a delete of an audit in every state: alone, and after others of the UID.
func fixHistories() [][]Run {
	fix := run(contract.Delete, 5)
	fix.Hash, fix.Node, fix.NothingBefore, fix.Attempt, fix.Audit = "", "", false, 1, "v1"
	made, undo, never := recorded(run(contract.Provision, 2), contract.TryAgain, 0), recorded(run(contract.Delete, 1), contract.Done, 0), recorded(run(contract.Delete, 1), contract.NotStarted, 0)
	made.Published, undo.After, never.After = true, 2, 2
	over := made
	over.Held = false
	unfinished, reclaim, older := run(contract.Provision, 2), undo, recorded(fix, contract.TryAgain, 0)
	unfinished.Unfinished, reclaim.Volume, older.Number, older.Name = true, pvUID, 4, "older"
	befores := [][]Run{nil, {over}, {made}, {made, undo}, {over, undo}, {made, never}, {unfinished}, {reclaim}, {older}}
	var out [][]Run
	for _, before := range befores {
		for _, state := range fixStates(fix) {
			if len(before) > 0 && before[0].Unfinished && !state[0].Gated {
				continue // it would not have been confirmed
			}
			out = append(out, append(slices.Clone(before), state...))
		}
	}
	return out
}

// fixStates returns the states of an audit's delete: gated, with what is in its way; running, stuck or not; ended.
func fixStates(fix Run) [][]Run {
	out := obstacles(gated(fix))
	retain := gated(fix)
	retain.Retain = true
	out = append(out, []Run{retain})
	for _, r := range outcomes(fix, []contract.Verdict{contract.Done, contract.TryAgain, contract.NotStarted, contract.Disrupted}) {
		if !r.Published && !r.DescribesPV {
			out = append(out, []Run{r})
		}
		if r.Published && !r.Held {
			r.Published = false
			out = append(out, []Run{r})
		}
	}
	unstarted := gated(fix)
	unstarted.Gated = false
	return append(out, []Run{unstarted})
}

// mayBeFixed reports whether nothing stands for the volume of an audit's delete, and its config is as it was.
func mayBeFixed(v View, r Run) bool {
	for i := range v.Runs {
		if o := &v.Runs[i]; o.Name != r.Name && (o.Unfinished || o.Recorded == nil || o.Held && !o.IsFix()) {
			return false
		}
	}
	config := v.Audit.Problem == nil && v.Audit.Supported && v.Audit.Revision == r.Revision
	return v.Claim == ClaimGone && !v.Volume.Exists() && v.Rival == "" && !r.Retain && config
}

// fixLaws checks what must hold of the deletes that an audit has made, for any action.
func fixLaws(out *broken, v View, action Action) {
	fixes := slices.ContainsFunc(v.Runs, func(r Run) bool { return r.IsFix() })
	if !fixes {
		return
	}
	if confirm, confirms := action.(Confirm); confirms && confirm.Run.IsFix() {
		out.law("confirmed the delete of a volume that may stand for something", !mayBeFixed(v, confirm.Run))
	}
	if cancel, cancels := action.(Cancel); cancels && cancel.Run.IsFix() {
		out.law("cancelled an audit's delete without a reason", cancel.Run.Gated && cancel.Why == "")
	} else if cancels {
		out.law("said of another run why an audit's is cancelled", cancel.Why != "")
	}
	if release, releases := action.(ReleaseRecord); releases && release.Run.IsFix() {
		out.law("said that a delete of an audit leaves something behind", release.LeftBehind != "" && !release.Run.Forget)
	}
	overIsNothing(out, v, action)
}

// overIsNothing checks that an audit's delete which is over changes no decision: whatever it has deleted, it is no run of the claim's.
func overIsNothing(out *broken, v View, action Action) {
	w := v
	w.Runs = slices.DeleteFunc(slices.Clone(v.Runs), func(r Run) bool {
		return r.IsFix() && !r.Held && r.Recorded != nil && r.Outcome.MayRunUntil.IsZero() && r.LostNode == "" && !r.PodKept
	})
	if len(w.Runs) == len(v.Runs) {
		return
	}
	without := Decide(w)
	if launch, launches := action.(Launch); launches {
		again, same := without.(Launch)
		out.law("used the name of an audit's Job", launch.Verb == contract.Delete && launch.Number <= v.lastNumber(contract.Delete))
		launch.Number, again.Number = 0, 0
		out.law("launched otherwise because of an audit's delete that is over", !same || launch != again)
		return
	}
	out.law("decided otherwise because of an audit's delete that is over", !reflect.DeepEqual(action, without))
}

// A fact that changes no action would be missing from the walk.
func TestWalkReachesEveryActionOnAnAuditsDelete(t *testing.T) {
	seen := map[string]int{}
	everyFix(t, func(v View) {
		switch a := Decide(v).(type) { //nolint:gochecksumtype // the others are not about it
		case Confirm:
			seen["confirmed"] += countFix(a.Run)
		case Cancel:
			seen["cancelled: "+a.Why] += countFix(a.Run)
		case RecordOutcome:
			seen["recorded"] += countFix(a.Run)
		case ReleaseRecord:
			seen["released"] += countFix(a.Run)
		}
	})
	for _, what := range []string{
		"confirmed", "recorded", "released", "cancelled: the claim of the volume exists", "cancelled: the PersistentVolume of the volume exists", "cancelled: " + aRival,
		"cancelled: its class has the reclaimPolicy Retain: the volume may be kept on purpose", "cancelled: no config", "cancelled: it was not confirmed in time",
		"cancelled: it was made under the config revision r1, and the class has r2 now", "cancelled: the config revision r1 does not serve the verb delete",
		"cancelled: the Job provision-uid-2 of the same claim is not over: the dispatcher deletes what it may have made",
	} {
		if seen[what] == 0 {
			t.Errorf("none was %s; there were %v", what, seen)
		}
	}
}

func countFix(r Run) int {
	if r.IsFix() {
		return 1
	}
	return 0
}

// What undid a run does not undo it again because an audit came after.
func TestAnAuditsDeleteUndoesNoRun(t *testing.T) {
	p, d := recorded(run(contract.Provision, 2), contract.TryAgain, 0), recorded(run(contract.Delete, 1), contract.Done, 0)
	fix := recorded(run(contract.Delete, 2), contract.Done, 0)
	p.Published, d.After, fix.After, fix.Audit = true, 2, 2, "v1"
	v := View{Now: now, Claim: ClaimGone, Delete: deleteTargets()[1], Runs: []Run{p, d, fix}}
	if release, releases := Decide(v).(ReleaseRecord); !releases || release.Run.Name != fix.Name {
		t.Errorf("decided %#v first", Decide(v))
	}
	v.Runs[2].Held = false
	if release, releases := Decide(v).(ReleaseRecord); !releases || release.Run.Name != p.Name {
		t.Errorf("decided %#v then", Decide(v))
	}
	v.Runs = []Run{p, v.Runs[2]}
	if launch, launches := Decide(v).(Launch); !launches || !launch.Undo || launch.Number != 3 {
		t.Errorf("decided %#v without an undo", Decide(v))
	}
}
