package decide

import (
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// servedAtOnce is a claim that can be provisioned at once.
func servedAtOnce() View {
	return View{
		Now: now, Claim: ClaimPending, Delete: Target{HasSlot: true, Supported: true},
		Provision: Target{HasSlot: true, RevisionStored: true, Supported: true, Hash: "h1", Revision: "r1", Node: "n1"},
	}
}

func TestARetainedPVOfAClaimThatIsBoundToAnotherIsReported(t *testing.T) {
	spare := Volume{State: Fits, Use: Unbound, UID: pvUID}
	for name, tt := range map[string]struct {
		claim   Claim
		volume  func(*Volume)
		reports bool
	}{
		"bound to another, and the PV to none": {ClaimBoundElsewhere, func(*Volume) {}, true},
		"the PV is terminating":                {ClaimBoundElsewhere, func(v *Volume) { v.Terminating = true }, false},
		"the PV was bound":                     {ClaimBoundElsewhere, func(v *Volume) { v.Use = InUse }, false},
		"bound to its own":                     {ClaimBound, func(v *Volume) { v.Use = InUse }, false},
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

// The PV controller may be about to write on the claim, and its write is refused if another comes
// between.
func TestNothingIsWrittenOnAClaimThatIsNotAskedFor(t *testing.T) {
	failed := servedAtOnce()
	failed.Runs = []Run{recorded(run(contract.Provision, 1), contract.TryAgain, 0)}
	full := failed
	full.Provision.NodeSelected, full.Provision.OnSelectedNode = true, true
	full.Runs = []Run{recorded(run(contract.Provision, 1), contract.NotStarted, 0)}
	full.Runs[0].Published, full.Runs[0].Reschedule = true, RescheduleAnnounced
	missing := servedAtOnce()
	missing.Provision.NodeSelected, missing.Provision.MissingNode = true, "the node n1"
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
