package decide

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// failedRun is a provision that may have made something.
func failedRun() Run {
	r := recorded(run(contract.Provision, 1), contract.TryAgain, time.Hour)
	r.Held, r.Published = true, true
	return r
}

// The run that an administrator gives up never ran, and an older one made the volume. Nothing of
// both is undone.
func TestWhatWasGivenUpIsNotUndoneByAnOlderRecord(t *testing.T) {
	newest := recorded(run(contract.Provision, 2), contract.NotStarted, time.Minute)
	newest.Held, newest.Published, newest.Forget = true, true, true
	v := View{Now: now, Claim: ClaimGone, Delete: deleteTargets()[1], Runs: []Run{failedRun(), newest}}
	for range 2 {
		release, releases := Decide(v).(ReleaseRecord)
		if !releases || release.LeftBehind == "" {
			t.Fatalf("got %#v, want the release of a record, and to say what stays", Decide(v))
		}
		v.Runs[release.Run.Number-1].Held = false
	}
	if action, waits := Decide(v).(Wait); !waits {
		t.Errorf("got %#v, want to wait", action)
	}
}

// A claim that still waits, and whose config has changed: the earlier run is not undone before the
// next.
func TestWhatIsKeptIsNotUndoneBeforeAnotherConfigIsTried(t *testing.T) {
	forgotten := failedRun()
	forgotten.Forget, forgotten.Held = true, false
	inDoubt := recorded(run(contract.Provision, 1), contract.Done, time.Hour)
	inDoubt.ReclaimPolicy, inDoubt.Held, inDoubt.Published = "Retain", true, true
	released := failedRun()
	released.Held = false
	for name, tt := range map[string]struct {
		run  Run
		left string
	}{
		"its record was released, since a PV stood for it": {released, reason.Released},
		"given up by an administrator":                     {forgotten, reason.Forgotten},
		"ended with exit code 0 under the policy Retain":   {inDoubt, reason.Kept},
	} {
		t.Run(name, func(t *testing.T) {
			tt.run.Revision = "another"
			v := View{Now: now, Claim: ClaimPending, Provision: provisionTargets()[1], Delete: deleteTargets()[1], Runs: []Run{tt.run}}
			launch, launches := Decide(v).(Launch)
			if !launches || launch.Verb != contract.Provision || launch.LeftBehind != tt.left {
				t.Errorf("got %#v, want a provision, and to say that %q", Decide(v), tt.left)
			}
		})
	}
}

// A run that never started does not stand for what was given up before it was launched, also when
// the Job of that has expired. It does if that record was taken away later.
func TestWhatWasReleasedIsNotUndoneByARunThatNeverStarted(t *testing.T) {
	released := failedRun()
	released.Held = false
	pending := View{Now: now, Claim: ClaimPending, Provision: provisionTargets()[1], Delete: deleteTargets()[1], Runs: []Run{released}}
	pending.Runs[0].Revision, pending.Runs[0].Hash = pending.Provision.Revision, pending.Provision.Hash
	launch, launches := Decide(pending).(Launch)
	if !launches || launch.NothingBefore || launch.LeftBehind != reason.Released {
		t.Fatalf("got %#v, want a provision that says what is left", Decide(pending))
	}
	next := recorded(run(contract.Provision, 2), contract.NotStarted, time.Minute)
	next.Held, next.Published, next.NothingBefore = true, true, false
	for _, says := range []string{reason.Released, ""} {
		next.LeftBehind = says
		for name, all := range map[string][]Run{"on record": {failedRun(), next}, "released": {released, next}, "expired": {next}} {
			v := View{Now: now, Claim: ClaimGone, Delete: deleteTargets()[1], Runs: all}
			undone := says == "" || name == "on record"
			release, releases := Decide(v).(ReleaseRecord)
			if launch, launches := Decide(v).(Launch); launches != undone || launches && !launch.Undo {
				t.Errorf("%s, says %q: got %#v", name, says, Decide(v))
			}
			if !undone && (!releases || release.Run.Number != 2 || release.LeftBehind != says) {
				t.Errorf("%s, says %q: got %#v, want its release", name, says, Decide(v))
			}
		}
	}
}

// With write-pv: dispatcher no PV can have been deleted that was never to be created.
func TestARetainedVolumeWhosePVWasNeverOnRecordIsUndone(t *testing.T) {
	r := recorded(run(contract.Provision, 1), contract.Done, time.Hour)
	r.ReclaimPolicy, r.Held, r.Published, r.DescribesPV = "Retain", true, true, true
	v := View{Now: now, Claim: ClaimGone, Delete: deleteTargets()[1], Runs: []Run{r}}
	if launch, launches := Decide(v).(Launch); !launches || !launch.Undo {
		t.Errorf("got %#v, want an undo", Decide(v))
	}
	v.Runs[0].Described, v.Runs[0].WhyNoPV = "a PV", "the API server refuses it"
	if action, reports := Decide(v).(ReportProblem); !reports {
		t.Errorf("got %#v, want a report: its PV may have been created", action)
	}
}

// A restore has dropped the annotation of a PV. Its volume is not deleted, and an event says so.
func TestAReleasedPVWithoutTheMarkOfItsClaimIsReported(t *testing.T) {
	v := View{Now: now, Claim: ClaimGone, Volume: Volume{State: Unproven, Use: Released, UID: "pv-uid", Why: "no mark", PolicyDelete: true, HasFinalizer: true}}
	if got, reports := Decide(v).(ReportProblem); !reports || got.Problem.Reason != "VolumeInDoubt" {
		t.Errorf("got %#v, want a report", Decide(v))
	}
	v.Volume.State = Foreign
	if got, waits := Decide(v).(Wait); !waits {
		t.Errorf("got %#v for the PV of another provisioner", got)
	}
}
