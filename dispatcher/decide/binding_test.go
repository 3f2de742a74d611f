package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// stamped is a claim that could be provisioned at once, and that may be bound to a PV that exists for as long.
func stamped(since time.Duration) View {
	return View{
		Now: now, Claim: ClaimPending, Binding: Binding{PV: "static-1", Since: now.Add(-since)},
		Provision: Target{HasSlot: true, RevisionStored: true, Supported: true, Hash: "h1", Revision: "r1", Node: "n1"}, Delete: Target{HasSlot: true, Supported: true},
	}
}

func TestAClaimThatMayBeBoundToAPVThatExistsWaits(t *testing.T) {
	v := stamped(time.Second)
	if w, waits := Decide(v).(Wait); !waits || w.Until.IsZero() || !strings.Contains(w.Why, "static-1") {
		t.Errorf("%#v, want to look again soon", Decide(v))
	}
	v = stamped(time.Minute)
	p, reports := Decide(v).(ReportProblem)
	if !reports || p.Problem.Reason != reason.WaitingForBinding || !strings.Contains(p.Problem.Note, "static-1") || p.Until.IsZero() {
		t.Errorf("%#v, want that it is said after a minute", Decide(v))
	}
	v.Binding = Binding{}
	if _, launches := Decide(v).(Launch); !launches {
		t.Errorf("%#v, want a launch when there is no such PV", Decide(v))
	}
}

func TestAnUndoIsNotLaunchedForAClaimThatMayBeBound(t *testing.T) {
	v := stamped(time.Second)
	v.Runs = []Run{recorded(run(contract.Provision, 1), contract.TryAgain, 0)}
	v.Runs[0].Published, v.Provision.Revision = true, "another"
	if _, waits := Decide(v).(Wait); !waits {
		t.Errorf("%#v, want to wait: the claim tells soon what is to be undone", Decide(v))
	}
}

func TestAGatedRunIsCancelledWhenItsClaimMayBeBoundToAPVThatExists(t *testing.T) {
	for _, since := range []time.Duration{time.Second, time.Hour} {
		v := stamped(since)
		v.Runs = []Run{gated(run(contract.Provision, 1))}
		if _, cancels := Decide(v).(Cancel); !cancels {
			t.Errorf("after %s: %#v, want the run cancelled", since, Decide(v))
		}
		v.Binding = Binding{}
		if _, confirms := Decide(v).(Confirm); !confirms {
			t.Errorf("without such a PV: %#v, want the run confirmed", Decide(v))
		}
	}
}

func TestARunThatHasStartedIsWaitedForAlthoughItsClaimMayBeBound(t *testing.T) {
	v := stamped(time.Second)
	v.Runs = []Run{run(contract.Provision, 1)}
	v.Runs[0].Unfinished = true
	if w, waits := Decide(v).(Wait); !waits || !strings.Contains(w.Why, v.Runs[0].Name) {
		t.Errorf("%#v, want to wait for the run", Decide(v))
	}
}

func TestARetainedPVOfAClaimThatIsBoundToAnotherIsReported(t *testing.T) {
	spare := Volume{Exists: true, UID: pvUID, Unbound: true}
	for name, tt := range map[string]struct {
		claim   Claim
		volume  func(*Volume)
		reports bool
	}{
		"bound to another, and the PV to none": {ClaimBoundElsewhere, func(*Volume) {}, true},
		"the PV is terminating":                {ClaimBoundElsewhere, func(v *Volume) { v.Terminating = true }, false},
		"the PV was bound":                     {ClaimBoundElsewhere, func(v *Volume) { v.Unbound = false }, false},
		"bound to its own":                     {ClaimBound, func(v *Volume) { v.Unbound = false }, false},
		"pending":                              {ClaimPending, func(*Volume) {}, false},
	} {
		v := View{Now: now, Claim: tt.claim, Volume: spare}
		tt.volume(&v.Volume)
		p, reports := Decide(v).(ReportProblem)
		if reports != tt.reports || reports && p.Problem.Reason != reason.VolumeInDoubt {
			t.Errorf("%s: %#v", name, Decide(v))
		}
	}
}
