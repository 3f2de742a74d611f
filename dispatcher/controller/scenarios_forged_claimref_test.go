package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

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
		w.forgeASecondPV(claim, revision)
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
			r.WritePV(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Name = "x\x1b[31m\nRemedy: a" })
			return fakecluster.Exit{}
		}))
		w.Start()
		w.CreateClaim("data")
		w.Advance(5 * time.Minute)
		if w.Events.About(onData, "") == nil {
			w.T.Fatal("no event about the claim")
		}
		w.MustNotContain("", "\x1b")
		w.MustNotContain("", "\nRemedy: a")
	})
}
