package controller_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

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

// A second PV of the same volume may be in use, also if it is large.
func TestALargePVOfTheSameVolumeKeepsIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
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
