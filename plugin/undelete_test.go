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
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
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

// A pod on a node holds up the end of its claim, so there is time to keep the volume of a class that
// keeps none.
func TestAClaimThatIsTerminatingIsSavedByThePolicyRetain(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Works)
		c.Start()
		c.CreateClaim("data")
		c.Until("it is bound", time.Minute, c.IsBound("data"))
		name := c.Claim("data").Spec.VolumeName
		get := func() *corev1.PersistentVolume { return fakecluster.Get[*corev1.PersistentVolume](c, "", name) }
		set := func(policy corev1.PersistentVolumeReclaimPolicy) {
			fakecluster.Update(c, fakecluster.Admin, get(), func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = policy })
			c.Advance(time.Minute)
		}
		c.Mounted["data"] = true
		fakecluster.Delete(c, fakecluster.User, c.Claim("data"))
		c.Advance(time.Hour)
		set(corev1.PersistentVolumeReclaimRetain)
		delete(c.Mounted, "data")
		c.Until("its PV is released", time.Minute, func() bool { return get().Status.Phase == corev1.VolumeReleased })
		c.Advance(100 * time.Hour)
		if why := undelete(c, "app/data", ""); why != "" {
			c.T.Fatal(why)
		}
		c.Until("the new claim is bound", time.Minute, c.IsBound("data"))
		set(corev1.PersistentVolumeReclaimDelete)
		c.Advance(100 * time.Hour)
		if claim := c.Claim("data"); claim.Spec.VolumeName != name || len(c.Storage) != 1 || len(c.Runs) != 1 {
			c.T.Fatalf("the claim has %s of %v, after %d runs", claim.Spec.VolumeName, c.Storage, len(c.Runs))
		}
		fakecluster.Delete(c, fakecluster.User, c.Claim("data"))
		c.Until("the volume is deleted with the new claim", time.Hour, func() bool { return len(c.Storage) == 0 })
	})
}
