package observe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// The PV controller binds a claim by two writes. A success that was shown in between made the
// second one conflict, for every fourth claim of a burst.
func TestAClaimIsBoundWhenItsPhaseSaysSo(t *testing.T) {
	for name, test := range map[string]struct {
		volume string
		phase  corev1.PersistentVolumeClaimPhase
		want   decide.Claim
	}{
		"its PV is chosen":           {contract.PVName("uid"), corev1.ClaimPending, decide.ClaimNotOurs},
		"it is bound":                {contract.PVName("uid"), corev1.ClaimBound, decide.ClaimBound},
		"its PV is lost":             {contract.PVName("uid"), corev1.ClaimLost, decide.ClaimBound},
		"another PV is chosen":       {"pv-other", corev1.ClaimPending, decide.ClaimBoundElsewhere},
		"it is bound to another one": {"pv-other", corev1.ClaimBound, decide.ClaimBoundElsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: test.volume}}
			claim.Status.Phase = test.phase
			if got := (&Observer{}).claimState(claim, nil, "uid"); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
