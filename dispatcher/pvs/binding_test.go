package pvs_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

func TestAClaimMayGetAnotherPVByItsClassItsNameOrASelector(t *testing.T) {
	named := &corev1.ObjectReference{Namespace: "app", Name: "data"}
	for name, tt := range map[string]struct {
		pv           *corev1.PersistentVolume
		selects      bool
		may, delayed bool
	}{
		"no PV":                {nil, false, false, false},
		"one of the class":     {&corev1.PersistentVolume{}, false, true, false},
		"one that names it":    {&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: named}}, false, true, true},
		"no PV and a selector": {nil, true, true, true},
		"its own":              {&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: contract.PVName("uid-1")}, Spec: corev1.PersistentVolumeSpec{ClaimRef: named}}, false, false, false},
	} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "uid-1"}}
		if tt.selects {
			claim.Spec.Selector = &metav1.LabelSelector{}
		}
		var all []*corev1.PersistentVolume
		if tt.pv != nil {
			all = append(all, tt.pv)
		}
		if may, delayed := pvs.MayGetOther(claim, all, false), pvs.MayGetOther(claim, all, true); may != tt.may || delayed != tt.delayed {
			t.Errorf("%s: %t, and %t where the scheduler selects the node", name, may, delayed)
		}
	}
}
