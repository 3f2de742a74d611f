package decide

import (
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

func TestARunHasTheStateOfItsFacts(t *testing.T) {
	launched := run(contract.Provision, 1)
	launched.Unfinished, launched.Unstarted = true, true
	running := launched
	running.Unstarted = false
	ended := run(contract.Provision, 1)
	held := recorded(ended, contract.TryAgain, 0)
	released := held
	released.Held = false
	for want, r := range map[RunState]Run{
		RunGated: gated(ended), RunStarting: launched, RunRunning: running,
		RunEnded: ended, RunRecorded: held, RunReleased: released,
	} {
		if got := r.State(); got != want {
			t.Errorf("the state is %s, want %s", got, want)
		}
	}
}

func TestAClaimHasTheStateOfItsFacts(t *testing.T) {
	held, tried := []Run{recorded(run(contract.Provision, 1), contract.TryAgain, 0)}, []Run{run(contract.Provision, 1)}
	tried[0].Held = false
	proven := func(use Use, policyDelete bool) Volume {
		return Volume{State: Fits, Use: use, UID: pvUID, PolicyDelete: policyDelete}
	}
	discarded := proven(NeverBound, true)
	discarded.Terminating = true
	states := map[ClaimState]bool{}
	for _, tt := range []struct {
		want ClaimState
		v    View
	}{
		{StateUnserved, View{Claim: ClaimNotOurs}},
		{StateUnserved, View{Claim: ClaimTerminating, Volume: Volume{State: Unproven}}},
		{StateUntouched, View{Claim: ClaimPending}},
		{StateUntouched, View{Claim: ClaimPending, Volume: Volume{State: Foreign}}},
		{StateAttempted, View{Claim: ClaimPending, Runs: held}},
		{StateInDoubt, View{Claim: ClaimPending, Volume: Volume{State: Unproven}}},
		{StateInDoubt, View{Claim: ClaimBound, Volume: Volume{State: Unproven}}},
		{StateMismatched, View{Claim: ClaimPending, Volume: Volume{State: Mismatched, Use: NeverBound}}},
		{StateDiscarded, View{Claim: ClaimGone, Volume: discarded}},
		{StateBinding, View{Claim: ClaimPending, Volume: proven(InUse, false)}},
		{StateBinding, View{Claim: ClaimNotOurs, Volume: proven(InUse, true)}},
		{StateInUse, View{Claim: ClaimBound, Volume: proven(InUse, true)}},
		{StateInUse, View{Claim: ClaimGone, Volume: proven(InUse, true)}},
		{StateInUse, View{Claim: ClaimBound, Volume: proven(InUse, true), Resize: ResizeLeftToNode}},
		{StateExpanding, View{Claim: ClaimBound, Volume: proven(InUse, true), Resize: ResizeRequested}},
		{StateExpanding, View{Claim: ClaimBound, Volume: proven(InUse, false), Resize: ResizeDone}},
		{StateRetained, View{Claim: ClaimGone, Volume: proven(Released, false)}},
		{StateReclaiming, View{Claim: ClaimGone, Volume: proven(Released, true)}},
		{StateUndoing, View{Claim: ClaimGone, Runs: held}},
		{StateUndoing, View{Claim: ClaimBoundElsewhere, Volume: Volume{State: Unproven}, Runs: held}},
		{StateAbandoned, View{Claim: ClaimGone, Runs: tried}},
	} {
		if got := tt.v.State(); got != tt.want {
			t.Errorf("the state is %q, want %q of %s", got, tt.want, describe(tt.v))
		}
		states[tt.want] = true
	}
	if len(states) != len(claimStates) {
		t.Errorf("%d of %d states are tested", len(states), len(claimStates))
	}
}
