package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// The note of an unproven PV of the right name once hid the rival that came after it.
func TestARivalBesideAnUnprovenPVOutlivesItsPV(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the first run failed", time.Minute, func() bool { return len(w.Runs) == 1 })
		w.rescuedBy(contract.PVName(string(claim.UID)), claim, "/used", func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		})
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Advance(time.Minute)
		rival := w.rescuedBy("rescued", claim, "/used", func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })
		w.Advance(time.Minute)
		fakecluster.Delete(w, fakecluster.Admin, rival)
		w.Advance(time.Minute)
		fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) {
			fakecluster.Annotate(pv, contract.AnnClaimUID, string(claim.UID))
		})
		w.Advance(time.Minute)
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Advance(time.Hour)
		if !w.Storage[string(claim.UID)] {
			w.T.Error("the volume was deleted")
		}
	})
}

// No administrator corrects anything: the next attempt of the waiting claim proves the run.
func TestARivalAfterAPVOfTheRightNameOutlivesItsPV(t *testing.T) {
	for _, first := range []bool{false, true} {
		t.Run(map[bool]string{false: "rival alone", true: "after a PV of the right name"}[first], func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Script(fakecluster.Halfway(75), fakecluster.Halfway(64)))
				w.Start()
				claim := w.CreateClaim("data")
				w.Until("two runs failed", time.Minute, func() bool { return len(w.Runs) == 2 })
				w.Advance(time.Second)
				byHand := func(name string) *corev1.PersistentVolume {
					return w.rescuedBy(name, claim, "/used", func(pv *corev1.PersistentVolume) {
						pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = "other", "11111111-0000-4000-8000-000000000001"
						if name == "rescued" {
							fakecluster.Annotate(pv, contract.AnnClaimUID, string(claim.UID))
						}
					})
				}
				if first {
					pv := byHand(contract.PVName(string(claim.UID)))
					w.Advance(10 * time.Second)
					fakecluster.Delete(w, fakecluster.Admin, pv)
					w.Advance(10 * time.Second)
				}
				rival := byHand("rescued")
				w.Advance(10 * time.Second)
				fakecluster.Delete(w, fakecluster.Admin, rival)
				w.Until("the claim is bound", time.Hour, w.IsBound("data"))
				w.Advance(time.Minute)
				fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
				w.Advance(time.Hour)
				if !w.Storage[string(claim.UID)] {
					w.T.Error("the volume was deleted")
				}
			})
		})
	}
}

// A run writes two PVs of one volume, and Kubernetes binds the claim to the other one.
func TestASpareWithARivalIsNotToBeDeletedInTheStorage(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
			fakecluster.Works(r)
			r.WritePV(func(pv *corev1.PersistentVolume) { pv.Name = "a-copy" })
			return fakecluster.Exit{}
		}))
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Advance(time.Hour)
		w.MustNotContain("", "and its volume in the storage")
	})
}

// The record with the only note is held until the policy can be set.
func TestANotedRivalIsNotForgottenWhereThePolicyCannotBeSet(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Script(fakecluster.Halfway(75), fakecluster.Halfway(75)))
		refusing := true
		w.refuseWrites(func(_ string, obj fakecluster.Object) bool {
			pv, is := obj.(*corev1.PersistentVolume)
			return refusing && is && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain && pv.Name != "rescued"
		})
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the first run failed", time.Minute, func() bool { return len(w.Runs) == 1 })
		rival := w.rescuedBy("rescued", claim, "/used", func(pv *corev1.PersistentVolume) {
			fakecluster.Annotate(pv, contract.AnnClaimUID, string(claim.UID))
			pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = "other", "11111111-0000-4000-8000-000000000001"
		})
		w.Advance(500 * time.Millisecond)
		fakecluster.Delete(w, fakecluster.Admin, rival)
		w.Until("the claim is bound", 10*time.Minute, w.IsBound("data"))
		w.Advance(10 * time.Second)
		refusing = false
		w.Advance(10 * time.Minute)
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Advance(time.Hour)
		if !w.Storage[string(claim.UID)] {
			w.T.Error("the volume was deleted")
		}
	})
}
