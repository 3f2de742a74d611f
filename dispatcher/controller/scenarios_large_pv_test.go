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
func TestAPVThatNoJobHasRoomForIsReportedAndNotDeleted(t *testing.T) {
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
