package controller_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

func TestItem05AConfigThatDoesNotExpandSaysSo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(works, "verbs", "provision,delete")
		w.start()
		claim := w.settled("data")
		w.ask("2Gi")
		w.run(time.Hour)
		w.mustRun("provision")
		w.mustSay(onData, "ExpansionNotSupported", home+"/gold", "verbs", contract.AnnRevision)
		if s := w.now("data").Status; len(s.Conditions) != 0 {
			w.t.Errorf("the claim says %+v, and nobody grows it", s)
		}
		w.reconfigure("verbs", "provision,delete,expand")
		w.settled("other") // which stores the new revision
		newer := w.pvOf(w.now("other")).Annotations[contract.AnnRevision]
		edit(w, admin, w.pvOf(claim), func(pv *corev1.PersistentVolume) { annotate(pv, contract.AnnRevision, newer) })
		w.until("the claim has its size", time.Minute, w.has("2Gi"))
	})
}

func TestRule09AnExpandRunsWithTheRevisionThatMadeTheVolume(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(works)
		w.images[newer] = image{does: fails(78, "")}
		w.start()
		w.settled("data")
		w.reconfigure("image", newer)
		drop(w, admin, get[*storagev1.StorageClass](w, "", "gold"))
		w.ask("2Gi")
		w.until("the claim has its size", time.Minute, w.has("2Gi"))
		if got := w.runs[1].image; got != gold {
			w.t.Errorf("expanded by %s", got)
		}
	})
}

func TestAClaimThatIsDeletedDuringAnExpandIsDeletedAfterIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(expanding(func(r *run) ending {
			drop(w, user, w.now("data"))
			r.grow()
			return ending{75, ""}
		}))
		w.start()
		w.settled("data")
		w.ask("2Gi")
		w.until("it was deleted", time.Minute, func() bool { return len(w.ran(contract.Delete)) == 1 })
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "expand", "delete")
	})
}

func TestAnExpandWithoutAPodHoldsUpTheEndOfItsClaimNoLongerThanItsTimeout(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(works, "timeout", "2m")
		w.start()
		w.settled("data")
		w.stuck["data"] = true
		w.ask("2Gi")
		w.until("its Job is there", time.Minute, func() bool { return len(w.made(contract.Expand)) == 1 })
		w.run(time.Minute)
		w.stuck["data"] = false
		w.until("it grew", time.Minute, w.has("2Gi"))
		w.stuck["data"] = true
		w.ask("3Gi")
		w.until("another Job is there", time.Minute, func() bool { return len(w.made(contract.Expand)) == 2 })
		drop(w, user, w.now("data"))
		w.until("the volume is to be deleted", 3*time.Minute, func() bool { return len(w.made(contract.Delete)) == 1 })
		w.stuck["data"] = false
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "expand", "delete")
	})
}

func TestRule07AClaimThatIsLeavingExpandsNoMore(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(works)
		w.start()
		w.settled("data")
		w.mounted["data"] = true
		drop(w, user, w.now("data"))
		w.ask("2Gi")
		w.run(time.Hour)
		w.mustRun("provision")
	})
}

// What a retained PV says must be true of its volume, too.
func TestARetainedPVSaysWhatAnExpandMadeOfItsVolumeAlthoughItsClaimHasGone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(expanding(func(r *run) ending {
			drop(w, user, w.now("data"))
			return works(r)
		}))
		w.start()
		claim := w.settled("data")
		w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
		w.ask("2Gi")
		w.until("the PV has the size", time.Minute, func() bool { return w.pvOf(claim).Spec.Capacity.Storage().String() == "2Gi" })
		w.until("no Job is held", time.Minute, func() bool { return len(w.records()) == 0 })
		w.mustRun("provision", "expand")
	})
}

func TestAnExpandRunsOnTheVolumesNodes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images[gold] = image{does: making(asLocal)}
		w.class("gold", corev1.PersistentVolumeReclaimDelete, expandable, firstConsumer)
		w.account("true")
		w.config("gold", "gold", "verbs", "provision,delete,expand", "run-on", "selected-node")
		w.node("n1")
		w.start()
		w.claim("data", func(c *corev1.PersistentVolumeClaim) { annotate(c, annNode, "n1") })
		w.until("the claim is bound", time.Minute, w.bound("data"))
		w.ask("2Gi")
		w.until("it grew", time.Minute, w.says(nodePends, fsPends))
		need := w.runs[1].pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		if got := need.NodeSelectorTerms[0].MatchExpressions; len(got) != 1 || !slices.Equal(got[0].Values, []string{"n1"}) {
			w.t.Errorf("the expand runs on %+v", need)
		}
	})
}

func TestAClaimThatWaitsForASlotGrowsWhenThereIsOne(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(works, "max-parallel", "1")
		w.start()
		w.settled("data")
		w.images[gold] = image{does: works, takes: 5 * time.Minute}
		w.claim("slow")
		w.until("the other runs", time.Minute, func() bool { return len(w.made(contract.Provision)) == 2 })
		w.ask("2Gi")
		w.run(time.Minute)
		if len(w.made(contract.Expand)) != 0 || len(w.now("data").Status.Conditions) != 0 {
			w.t.Error("it grows without a slot, or says so")
		}
		w.until("the claim has its size", 11*time.Minute, w.has("2Gi"))
	})
}

// A populator has filled the volume and handed it on: its claim's UID is not the volume's.
func TestRule06AClaimWhoseVolumeWasMadeForAnotherGrowsToo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(works)
		w.start()
		prime := w.settled("prime")
		target := w.claim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new("example.com"), Kind: "Hello", Name: "world"}
		})
		edit(w, "populator", w.pvOf(prime), func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = "data", target.UID
		})
		w.until("the target is bound", time.Minute, w.bound("data"))
		drop(w, "populator", prime)
		w.ask("2Gi")
		w.until("the claim has its size", time.Minute, w.has("2Gi"))
		w.mustTell(onData, "VolumeResizeSuccessful", 1, "2Gi")
		if r := w.runs[1]; r.request.UID != string(prime.UID) || r.request.Name != "data" {
			w.t.Errorf("the expand was asked for %+v", r.request)
		}
	})
}

func TestItem05AClassThatTookItsPermissionBackGrowsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(works)
		w.start()
		w.settled("data")
		class := get[*storagev1.StorageClass](w, "", "gold")
		edit(w, admin, class, func(c *storagev1.StorageClass) { c.AllowVolumeExpansion = nil })
		w.run(time.Second)
		w.ask("2Gi")
		w.run(time.Hour)
		w.mustRun("provision")
		w.mustSay(onData, "ExpansionNotSupported", "allowVolumeExpansion")
		edit(w, admin, class, expandable)
		w.until("the claim has its size", time.Minute, w.has("2Gi"))
	})
}

// Somebody else writes on the claim at the same time: nothing of his is lost.
func TestOtherConditionsOfTheClaimStay(t *testing.T) {
	inWorld(t, func(w *world) {
		w.growingClass(works)
		w.start()
		w.settled("data")
		edit(w, "other", w.now("data"), func(c *corev1.PersistentVolumeClaim) {
			c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimVolumeModifyingVolume, Status: corev1.ConditionTrue}}
		})
		w.ask("2Gi")
		w.until("the claim has its size", time.Minute, func() bool { return w.now("data").Status.Capacity.Storage().String() == "2Gi" })
		if got := w.now("data").Status.Conditions; len(got) != 1 || got[0].Type != corev1.PersistentVolumeClaimVolumeModifyingVolume {
			w.t.Errorf("the claim's conditions are %+v", got)
		}
	})
}
