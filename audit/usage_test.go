package audit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/contract"
)

// full returns a PV of 10 GiB, and the claim that is bound to it.
func full(uid, class string) (*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + uid, Annotations: map[string]string{contract.AnnClaimUID: uid}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
			ClaimRef: &corev1.ObjectReference{Namespace: "app", Name: "of-" + uid, UID: types.UID(uid)},
		},
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "of-" + uid, UID: types.UID(uid)}}
	claim.Spec.VolumeName = pv.Name
	return pv, claim
}

func TestUsageIsOfPVsByTheListsOfTheirClasses(t *testing.T) {
	t.Parallel()
	s := audit.State{ClusterUID: "c", Volumes: map[string][]audit.Volume{
		"gold": {
			{UID: "half", Volume: "v1", Used: contract.UsedBytes(5 << 30)},
			{UID: "full", Volume: "v2", Used: contract.UsedBytes(10 << 30)},
			{UID: "released", Volume: "v3", Used: contract.UsedBytes(0)},
			{UID: "unknown", Volume: "v4"},
			{UID: "twice", Volume: "v5", Used: contract.UsedBytes(1)},
			{UID: "twice", Volume: "v6", Used: contract.UsedBytes(2)},
			{UID: "foreign", Volume: "v7", Used: contract.UsedBytes(3), ClusterUID: "another"},
			{UID: "left", Volume: "v8", Used: contract.UsedBytes(4)},
			{UID: "silver", Volume: "v9", Used: contract.UsedBytes(5)},
		},
		"silver": {{UID: "half", Volume: "v1", Used: contract.UsedBytes(6)}},
	}}
	for _, uid := range []string{"half", "full", "released", "unknown", "twice", "foreign", "silver"} {
		class := "gold"
		if uid == "silver" {
			class = uid
		}
		pv, claim := full(uid, class)
		s.PVs = append(s.PVs, pv)
		if uid != "released" {
			s.Claims = append(s.Claims, claim)
		}
	}
	want := []audit.Usage{
		{Class: "gold", PV: "pvc-full", Namespace: "app", Claim: "of-full", Size: 10 << 30, Used: 10 << 30},
		{Class: "gold", PV: "pvc-half", Namespace: "app", Claim: "of-half", Size: 10 << 30, Used: 5 << 30},
		{Class: "gold", PV: "pvc-released", Size: 10 << 30},
	}
	if diff := cmp.Diff(want, audit.Usages(s)); diff != "" {
		t.Error(diff)
	}
}
