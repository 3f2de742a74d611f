package observe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
)

// The PV controller binds a claim by two writes. A success that was shown in between made the
// second one conflict, for every fourth claim of a burst.
func TestAClaimIsBoundWhenItsPhaseSaysSo(t *testing.T) {
	for name, test := range map[string]struct {
		volume string
		exists bool
		phase  corev1.PersistentVolumeClaimPhase
		want   decide.Claim
	}{
		"its PV is chosen":                {contract.PVName("uid"), true, corev1.ClaimPending, decide.ClaimNotOurs},
		"its user names the PV to come":   {contract.PVName("uid"), false, corev1.ClaimPending, decide.ClaimPending},
		"it is bound":                     {contract.PVName("uid"), true, corev1.ClaimBound, decide.ClaimBound},
		"its PV is lost":                  {contract.PVName("uid"), false, corev1.ClaimLost, decide.ClaimBound},
		"another PV is chosen":            {"pv-other", false, corev1.ClaimPending, decide.ClaimBoundElsewhere},
		"it is bound to another one":      {"pv-other", true, corev1.ClaimBound, decide.ClaimBoundElsewhere},
		"its user has named another's PV": {"pv-other", true, "", decide.ClaimBoundElsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []metav1.Object
			if test.exists {
				objects = append(objects, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: test.volume}})
			}
			caches, err := cluster.NewStatic(nil, nil, objects...)
			if err != nil {
				t.Fatal(err)
			}
			class := &storagev1.StorageClass{Provisioner: contract.ProvisionerName}
			claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: test.volume}}
			claim.Status.Phase = test.phase
			claim.Annotations = map[string]string{storagehelpers.AnnStorageProvisioner: contract.ProvisionerName}
			b := &Observer{Resolver: resolve.Resolver{Caches: caches, Provisioner: contract.ProvisionerName}}
			if got := b.claimState(claim, class, "uid"); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
