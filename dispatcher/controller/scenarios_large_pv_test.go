package controller_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// No Job has room for the PV, so its volume is not deleted. The caches keep only what names it: one
// token could otherwise fill them with a thousand such PVs.
func TestAPVThatIsTooLargeIsReportedAndNotDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(making(func(pv *corev1.PersistentVolume) {
			pv.Spec.NFS, pv.Spec.CSI = nil, &corev1.CSIPersistentVolumeSource{
				Driver: "example.com", VolumeHandle: pv.Name, VolumeAttributes: map[string]string{"text": strings.Repeat("x", 300<<10)},
			}
		}))
		w.Start()
		claim := w.CreateClaim("data")
		w.Advance(time.Minute)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(time.Hour)
		w.MustEmitSome("PersistentVolume/"+contract.PVName(string(claim.UID)), "VolumeInDoubt", "is larger than 200 KiB")
		if n := len(w.CreatedJobs(contract.Delete)); n != 0 {
			t.Errorf("%d Jobs to delete it", n)
		}
	})
}

// A delete once got a part of the PV, without what the image had noted on it: the volume stayed.
func TestNoDeleteGetsAPartOfAPV(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(making(func(pv *corev1.PersistentVolume) {
			fakecluster.Annotate(pv, "example.com/text", strings.Repeat("x", 220<<10))
			pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
		}))
		w.Start()
		claim := w.CreateClaim("data")
		w.Advance(time.Minute)
		if pv := w.PVOf(claim); pv != nil {
			fakecluster.Delete(w, fakecluster.Admin, pv)
		}
		w.Advance(time.Hour)
		if n := len(w.CreatedJobs(contract.Delete)); n != 0 || w.PVOf(claim) == nil {
			t.Errorf("%d Jobs to delete it, and its PV: %v", n, w.PVOf(claim))
		}
	})
}

// It is not expanded either, and its claim says why.
func TestAClaimSaysThatItsPVIsTooLarge(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(making(asISCSI))
		w.Start()
		claim := w.provisioned("data")
		fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) {
			fakecluster.Annotate(pv, "example.com/text", strings.Repeat("x", 220<<10))
		})
		w.requestSize("3Gi")
		w.Advance(time.Hour)
		w.MustEmitSome(onData, "VolumeInDoubt", "is larger than 200 KiB")
	})
}

// A second PV of the same volume may be in use, also if it is large, and whatever its source.
func TestALargePVOfTheSameVolumeKeepsIt(t *testing.T) {
	for _, source := range []int{1 << 10, 20 << 10} {
		inWorld(t, func(w *world) {
			w.SetUpGold(making(func(pv *corev1.PersistentVolume) {
				pv.Spec.NFS, pv.Spec.CSI = nil, &corev1.CSIPersistentVolumeSource{
					Driver: "example.com", VolumeHandle: pv.Name, VolumeAttributes: map[string]string{"text": strings.Repeat("x", source)},
				}
			}))
			w.Start()
			claim := w.provisioned("data")
			own := w.PVOf(claim)
			w.staticPV("1Gi", func(pv *corev1.PersistentVolume) {
				pv.Spec.PersistentVolumeSource = own.Spec.PersistentVolumeSource
				pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "app", Name: "second"}
				fakecluster.Annotate(pv, "example.com/text", strings.Repeat("x", 220<<10))
			})
			w.CreateClaim("second", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "static" })
			w.Until("the second is bound", time.Minute, w.IsBound("second"))
			fakecluster.Delete(w, fakecluster.User, claim)
			w.Advance(time.Hour)
			if !w.Storage[string(claim.UID)] {
				t.Error("the volume was deleted while another PV is bound")
			}
		})
	}
}
