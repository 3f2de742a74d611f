package decide

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// awaitingItsBinding is a claim that could be provisioned at once, if Kubernetes did not perhaps bind it to a PV that exists.
func awaitingItsBinding() View {
	return View{
		Now: now, Claim: ClaimPending, Delete: Target{HasSlot: true, Supported: true},
		Provision: Target{
			HasSlot: true, RevisionStored: true, Supported: true, Hash: "h1", Revision: "r1", Node: "n1",
			Problem: &Problem{Note: "the PV static", RetryAfter: time.Second},
		},
	}
}

func TestAClaimThatMayBeBoundToAPVThatExistsIsLookedAtAgain(t *testing.T) {
	v := awaitingItsBinding()
	if p, reports := Decide(v).(ReportProblem); !reports || !p.Until.Equal(now.Add(time.Second)) {
		t.Errorf("%#v, want to look again soon", Decide(v))
	}
	v.Provision.Problem = nil
	if _, launches := Decide(v).(Launch); !launches {
		t.Errorf("%#v, want a launch when there is no such PV", Decide(v))
	}
}

func TestAnUndoIsNotLaunchedForAClaimThatMayBeBound(t *testing.T) {
	v := awaitingItsBinding()
	v.Runs = []Run{recorded(run(contract.Provision, 1), contract.TryAgain, 0)}
	v.Runs[0].Published, v.Provision.Revision = true, "another"
	if _, waits := Decide(v).(ReportProblem); !waits {
		t.Errorf("%#v, want to wait: the claim says soon what is to be undone", Decide(v))
	}
}

func TestAGatedRunIsCancelledWhenItsClaimMayBeBoundToAPVThatExists(t *testing.T) {
	v := awaitingItsBinding()
	v.Runs = []Run{gated(run(contract.Provision, 1))}
	if _, cancels := Decide(v).(Cancel); !cancels {
		t.Errorf("%#v, want the run cancelled", Decide(v))
	}
	v.Provision.Problem = nil
	if _, confirms := Decide(v).(Confirm); !confirms {
		t.Errorf("without such a PV: %#v, want the run confirmed", Decide(v))
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

// The PV controller may be about to write on the claim, and its write is refused if another comes between.
func TestNothingIsWrittenOnAClaimThatIsNotAskedFor(t *testing.T) {
	failed := awaitingItsBinding()
	failed.Provision.Problem = nil
	failed.Runs = []Run{recorded(run(contract.Provision, 1), contract.TryAgain, 0)}
	full := failed
	full.Provision.NodeSelected, full.Provision.OnSelectedNode = true, true
	full.Runs = []Run{recorded(run(contract.Provision, 1), contract.NotStarted, 0)}
	full.Runs[0].Published, full.Runs[0].Reschedule = true, RescheduleAnnounced
	missing := awaitingItsBinding()
	missing.Provision.Problem, missing.Provision.NodeSelected, missing.Provision.MissingNode = nil, true, "the node n1"
	for name, v := range map[string]View{"a failure": failed, "a node that starts no run": full, "a missing node": missing} {
		if action := Decide(v); !writesOnClaim(action) {
			t.Errorf("%s: %#v, want a write on the claim that was asked for", name, action)
		}
		v.Unasked = true
		if action := Decide(v); writesOnClaim(action) {
			t.Errorf("%s: %#v on a claim that was not", name, action)
		}
	}
}

func writesOnClaim(a Action) bool {
	_, publishes := a.(PublishResult)
	_, returns := a.(Reschedule)
	return publishes || returns
}

// A claim that may get another PV is not ours before the PV controller has asked for one.
func TestAGatedRunIsCancelledWhenItsClaimIsToHaveAPVThatExists(t *testing.T) {
	v := View{Now: now, Claim: ClaimNotOurs, Unasked: true, Runs: []Run{gated(run(contract.Provision, 1))}}
	if _, cancels := Decide(v).(Cancel); !cancels {
		t.Errorf("%#v, want the run cancelled", Decide(v))
	}
}
