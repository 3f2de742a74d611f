package plugin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// Who creates a namespace of the name of a deleted one would get the data of the former.
func TestAnUndeleteRefusesAYoungerNamespace(t *testing.T) {
	released := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", Annotations: map[string]string{contract.AnnClaimUID: "1"}}}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "app", Name: "data", UID: "1"}
	pv.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased, LastPhaseTransitionTime: new(metav1.NewTime(released))}
	for _, test := range []struct {
		created time.Time
		to      string
		refused bool
	}{
		{released.Add(time.Second), "", true},
		{released.Add(time.Second), "app/data", false},
		{released.Add(-time.Second), "", false},
	} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "app", CreationTimestamp: metav1.NewTime(test.created)}}
		_, _, err := plugin.Undelete(t.Context(), fake.NewClientset(ns, pv), "app/data", test.to)
		if refused := strings.Contains(fmt.Sprint(err), "was created after its claim was deleted"); refused != test.refused {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
