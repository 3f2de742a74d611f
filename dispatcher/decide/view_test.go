package decide

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// The Job that deleted the first provision's PV is kept longer than the Job of that provision.
func TestDeleteIsNotTheUndoOfALaterProvision(t *testing.T) {
	done := runs.Outcome{Verdict: contract.Done}
	v := View{Claim: ClaimPending, Provision: Target{HasSlot: true, RevisionStored: true, Supported: true}, Delete: Target{HasSlot: true, RevisionStored: true, Supported: true}}
	v.Runs = []Run{{
		Name: "delete-uid-1", Outcome: done,
		Record: runs.Record{Verb: contract.Delete, Number: 1, Record: jobs.Record{After: 1, Volume: "pv-uid", Recorded: &done}},
	}}
	a, launches := Decide(v).(Launch)
	if !launches || a.Verb != contract.Provision || a.Number != 2 || !a.NothingBefore {
		t.Fatalf("%#v, want the second provision", a)
	}
	failed := runs.Outcome{Verdict: contract.TryAgain}
	v.Runs = append(v.Runs, Run{
		Name: "provision-uid-2", Outcome: failed, Published: true,
		Record: runs.Record{Verb: contract.Provision, Number: a.Number, Held: true, Record: jobs.Record{Attempt: 1, NothingBefore: a.NothingBefore, Recorded: &failed}},
	})
	v.Claim = ClaimGone
	if a, launches := Decide(v).(Launch); !launches || !a.Undo || a.After != 2 {
		t.Errorf("%#v, want the undo of the second provision", Decide(v))
	}
}

// After an undo a PV of the same name may be written, which needs a delete of its own.
func TestDeleteOfAnEarlierPVIsNotThatOfALaterOne(t *testing.T) {
	earlier := recorded(run(contract.Delete, 1), contract.Done, 0)
	earlier.Volume, earlier.Held = "an earlier PV", false
	v := View{
		Now: now, Volume: Volume{State: Fits, Use: Released, UID: pvUID, PolicyDelete: true, HasFinalizer: true},
		Delete: Target{HasSlot: true, RevisionStored: true, Supported: true}, Runs: []Run{earlier},
	}
	if a, launches := Decide(v).(Launch); !launches || a.Verb != contract.Delete || a.Undo {
		t.Errorf("%#v, want the delete of the PV", Decide(v))
	}
}

// What a run may have made is asked while a later one is gated, too.
func TestMayHaveMadeSkipsRunsThatNeverStarted(t *testing.T) {
	older := recorded(run(contract.Provision, 1), contract.TryAgain, 0)
	works := run(contract.Provision, 2)
	works.Unfinished = true
	waits := works
	waits.Unstarted = true
	for name, tt := range map[string]struct {
		runs []Run
		want int
	}{
		"none":                            {nil, 0},
		"one that ended":                  {[]Run{older}, 1},
		"a later one works":               {[]Run{older, works}, 2},
		"a later one is gated":            {[]Run{older, gated(run(contract.Provision, 2))}, 1},
		"a later one has no pod yet":      {[]Run{older, waits}, 1},
		"a later one was cancelled":       {[]Run{older, recorded(run(contract.Provision, 2), contract.NotStarted, 0)}, 1},
		"only one that is gated":          {[]Run{gated(run(contract.Provision, 2))}, 2},
		"a later one of another verb ran": {[]Run{older, recorded(run(contract.Delete, 3), contract.Done, 0)}, 1},
	} {
		got := 0
		if r := (View{Runs: tt.runs}).MayHaveMade(); r != nil {
			got = r.Number
		}
		if got != tt.want {
			t.Errorf("%s: the run %d, want %d", name, got, tt.want)
		}
	}
}

// A wait for a time, or something to do, comes first: what is left is reported when nothing else
// happens.
func TestAPodThatIsLeftIsReportedInsteadOfAWait(t *testing.T) {
	left := Problemf("RunNotConfirmed", "its Job has left it")
	for name, tt := range map[string]struct {
		view    View
		reports bool
	}{
		"nothing is left to do":     {View{Now: now, LeftPod: left}, true},
		"the volume is in use":      {View{Now: now, Claim: ClaimBound, Volume: Volume{State: Fits, UID: pvUID, PolicyDelete: true, HasFinalizer: true}, LeftPod: left}, true},
		"there is something to do":  {View{Now: now, Claim: ClaimBound, Volume: Volume{State: Fits, UID: pvUID, PolicyDelete: true}, LeftPod: left}, false},
		"no pod is left":            {View{Now: now}, false},
		"nothing is launched":       {View{Now: now, Claim: ClaimPending, Provision: provisionTargets()[1], LeftPod: left}, true},
		"something else is waiting": {View{Now: now, Claim: ClaimPending, Provision: provisionTargets()[1], NotBefore: now.Add(time.Minute), LeftPod: left}, false},
	} {
		if action, reports := Decide(tt.view).(ReportProblem); reports != tt.reports || reports && action.Problem.Reason != left.Reason {
			t.Errorf("%s: %#v", name, Decide(tt.view))
		}
	}
}
