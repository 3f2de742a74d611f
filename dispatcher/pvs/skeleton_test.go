package pvs_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

func TestGoldenSkeletons(t *testing.T) {
	for name, test := range map[string]struct {
		reclaim string
		change  func(*corev1.PersistentVolumeClaim)
	}{
		"pv-delete": {"Delete", func(*corev1.PersistentVolumeClaim) {}},
		"pv-retain-block-shared": {"Retain", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
			c.Spec.VolumeAttributesClassName = new("fast")
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany}
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1.5G")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := fixture.Config(t, test.reclaim, nil)
			sc := fixture.Class()
			sc.MountOptions = []string{"hard", "nfsvers=4.1"}
			request := jobs.Request(fixture.Claim(test.change), sc, cfg)
			pv := pvs.Skeleton(request, cfg, contract.ProvisionerName)
			fixture.Golden(t, name, pv)
			if fault := pvs.Unproven(pv, fixture.UID); fault != "" {
				t.Errorf("the skeleton would be no proof: %s", fault)
			}
		})
	}
}

func TestProofNeedsTheUIDAndAClaimRef(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolume)
		word   string
	}{
		"as the skeleton has it":  {func(*corev1.PersistentVolume) {}, ""},
		"bound to another by now": {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "another" }, ""},
		"no UID":                  {func(pv *corev1.PersistentVolume) { delete(pv.Annotations, contract.AnnClaimUID) }, contract.AnnClaimUID},
		"another's UID":           {func(pv *corev1.PersistentVolume) { pv.Annotations[contract.AnnClaimUID] = "x" }, contract.AnnClaimUID},
		"no claimRef":             {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }, "may bind any claim to it"},
	} {
		pv := fixture.PV(t)
		test.change(pv)
		got := pvs.Unproven(pv, fixture.UID)
		if (got == "") != (test.word == "") || !strings.Contains(got, test.word) {
			t.Errorf("%s: %q, want %q in it", name, got, test.word)
		}
	}
}
