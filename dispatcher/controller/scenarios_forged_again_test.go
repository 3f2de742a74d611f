package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// The thief of the token of the first run writes the PV again as soon as the administrator has
// deleted it, as the event says.
func TestRevisionOfItsOwnIsNotWhatTheSecondForgedPVNames(t *testing.T) {
	for name, forgesFirst := range map[string]bool{"the first is forged": true, "the first is only too small": false} {
		for _, grows := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", grows", false: ", deleted"}[grows], func(t *testing.T) {
				inWorld(t, func(w *world) {
					var revision string
					first := true
					revision = w.setUpVictim(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
						r.CreateVolume()
						if !first {
							return fakecluster.Works(r)
						}
						first = false
						r.WritePV(func(pv *corev1.PersistentVolume) {
							tooSmall(pv)
							pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
							if forgesFirst {
								fakecluster.Annotate(pv, contract.AnnRevision, revision)
							}
						})
						return fakecluster.Exit{}
					}))
					claim := w.CreateClaim("data")
					w.Until("its PV is in doubt", 5*time.Minute, func() bool { return w.Events.About(aboutClaim("data"), "VolumeInDoubt") != nil })
					w.forgeASecondPV(claim, revision)
					if grows && w.IsBound("data")() {
						fakecluster.Update(w, fakecluster.User, w.Claim("data"), func(claim *corev1.PersistentVolumeClaim) {
							claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
						})
						w.Advance(3 * time.Hour)
					} else {
						fakecluster.Delete(w, fakecluster.User, claim)
						w.Advance(3 * time.Hour)
					}
					w.mustSpareVictim()
				})
			})
		}
	}
}

// forgeASecondPV writes the PV of a claim with the token of its pod, and with the revision of another
// class, after the first was deleted as its event says. The class has no slot for another attempt,
// which would have a record of its own: another claim of it is being served.
func (w *world) forgeASecondPV(claim *corev1.PersistentVolumeClaim, revision string) {
	w.T.Helper()
	w.UpdateConfig("image", fakecluster.GoldImage, "verbs", "provision,delete,expand", "max-parallel", "1")
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 8 * time.Minute}
	w.CreateClaim("busy")
	w.Advance(2 * time.Minute)
	stolen := w.Runs[1].PV.DeepCopy()
	fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
	w.Until("the PV is gone", time.Minute, func() bool { return w.PVOf(claim) == nil })
	fakecluster.Annotate(stolen, contract.AnnRevision, revision)
	stolen.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	stolen.Spec.NFS = &corev1.NFSVolumeSource{Server: "nfs", Path: "/theirs"}
	fakecluster.Create(w, "system:serviceaccount:flex-provisioner:flex-provisioner", stolen)
	w.Advance(20 * time.Minute)
}
