package controller_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

func TestAConfigThatDoesNotExpandSaysSo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works, "verbs", "provision,delete")
		w.Start()
		claim := w.provisioned("data")
		w.requestSize("2Gi")
		w.Advance(time.Hour)
		w.MustRun("provision")
		w.MustEmitSome(onData, "ExpansionNotSupported", fakecluster.ConfigNamespace+"/gold", "verbs", contract.AnnRevision)
		if s := w.Claim("data").Status; len(s.Conditions) != 0 {
			w.T.Errorf("the claim says %+v, and nobody grows it", s)
		}
		w.UpdateConfig("verbs", "provision,delete,expand")
		w.provisioned("other") // which stores the new revision
		newer := w.PVOf(w.Claim("other")).Annotations[contract.AnnRevision]
		fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) { fakecluster.Annotate(pv, contract.AnnRevision, newer) })
		w.Until("the claim has its size", time.Minute, w.hasSize("2Gi"))
	})
}

func TestRevisionOfItsOwnExpandsAVolume(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works)
		w.Images[newer] = fakecluster.Image{Does: fakecluster.Fails(78, "")}
		w.Start()
		w.provisioned("data")
		w.UpdateConfig("image", newer)
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*storagev1.StorageClass](w, "", "gold"))
		w.requestSize("2Gi")
		w.Until("the claim has its size", time.Minute, w.hasSize("2Gi"))
		if got := w.Runs[1].Image; got != fakecluster.GoldImage {
			w.T.Errorf("expanded by %s", got)
		}
	})
}

func TestAClaimThatIsDeletedDuringAnExpandIsDeletedAfterIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(expanding(func(r *fakecluster.Run) fakecluster.Exit {
			fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
			r.ExpandVolume()
			return fakecluster.Exit{Code: 75}
		}))
		w.Start()
		w.provisioned("data")
		w.requestSize("2Gi")
		w.Until("it was deleted", time.Minute, func() bool { return len(w.RunsOf(contract.Delete)) == 1 })
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "expand", "delete")
	})
}

func TestAnExpandWithoutAPodDelaysItsClaimsDeletionNoLongerThanItsTimeout(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works, "timeout", "2m")
		w.Start()
		w.provisioned("data")
		w.NoPodFor["data"] = true
		w.requestSize("2Gi")
		w.Until("its Job is there", time.Minute, func() bool { return len(w.CreatedJobs(contract.Expand)) == 1 })
		w.Advance(time.Minute)
		w.NoPodFor["data"] = false
		w.Until("it grew", time.Minute, w.hasSize("2Gi"))
		w.NoPodFor["data"] = true
		w.requestSize("3Gi")
		w.Until("another Job is there", time.Minute, func() bool { return len(w.CreatedJobs(contract.Expand)) == 2 })
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Until("the volume is to be deleted", 4*time.Minute, func() bool { return len(w.CreatedJobs(contract.Delete)) == 1 })
		w.NoPodFor["data"] = false
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "expand", "delete")
	})
}

func TestATerminatingClaimIsNotExpanded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works)
		w.Start()
		w.provisioned("data")
		w.Mounted["data"] = true
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.requestSize("2Gi")
		w.Advance(time.Hour)
		w.MustRun("provision")
	})
}

// What a retained PV says must be true of its volume, too.
func TestARetainedPVHasTheExpandedCapacityAlthoughItsClaimIsDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(expanding(func(r *fakecluster.Run) fakecluster.Exit {
			fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
			return fakecluster.Works(r)
		}))
		w.Start()
		claim := w.provisioned("data")
		w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
		w.requestSize("2Gi")
		w.Until("the PV has the size", time.Minute, func() bool { return w.PVOf(claim).Spec.Capacity.Storage().String() == "2Gi" })
		w.Until("no Job is held", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
		w.MustRun("provision", "expand")
	})
}

func TestAnExpandRunsOnTheVolumesNodes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: making(asLocal)}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, fakecluster.Expandable, fakecluster.WaitForFirstConsumer)
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold", "verbs", "provision,delete,expand", "run-on", "selected-node")
		w.CreateNode("n1")
		w.Start()
		w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) { fakecluster.Annotate(c, fakecluster.AnnSelectedNode, "n1") })
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.requestSize("2Gi")
		w.Until("it grew", time.Minute, w.showsResize(nodePends, fsPends))
		need := w.Runs[1].Pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		if got := need.NodeSelectorTerms[0].MatchExpressions; len(got) != 1 || !slices.Equal(got[0].Values, []string{"n1"}) {
			w.T.Errorf("the expand runs on %+v", need)
		}
	})
}

func TestAnExpandWaitsForASlot(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works, "max-parallel", "1")
		w.Start()
		w.provisioned("data")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
		w.CreateClaim("slow")
		w.Until("the other runs", time.Minute, func() bool { return len(w.CreatedJobs(contract.Provision)) == 2 })
		w.requestSize("2Gi")
		w.Advance(time.Minute)
		if len(w.CreatedJobs(contract.Expand)) != 0 || len(w.Claim("data").Status.Conditions) != 0 {
			w.T.Error("it grows without a slot, or says so")
		}
		w.Until("the claim has its size", 11*time.Minute, w.hasSize("2Gi"))
	})
}

// The claims of a class that batches have a pace. The wait of an expand counts from when its volume
// was bound, which may be long ago.
func TestAnExpandInAnIdleClassIsNotToldThatItWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works, "max-parallel", "1", "batch-size", "8")
		w.Start()
		w.provisioned("data")
		w.Advance(time.Hour)
		w.requestSize("2Gi")
		w.Until("the claim has its size", time.Minute, w.hasSize("2Gi"))
		if told := w.Events.About(aboutClaim("data"), reason.WaitingForSlot); len(told) > 0 {
			w.T.Errorf("told that it waits, in a class without other Jobs: %v", told)
		}
	})
}

// A populator has filled the volume and handed it on: its claim's UID is not the volume's.
func TestVolumeByNameIsExpandedForAnotherClaimToo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works)
		w.Start()
		prime := w.provisioned("prime")
		target := w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new("example.com"), Kind: "Hello", Name: "world"}
		})
		fakecluster.Update(w, "populator", w.PVOf(prime), func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = "data", target.UID
		})
		w.Until("the target is bound", time.Minute, w.IsBound("data"))
		fakecluster.Delete(w, "populator", prime)
		w.requestSize("2Gi")
		w.Until("the claim has its size", time.Minute, w.hasSize("2Gi"))
		w.MustEmit(onData, "VolumeResizeSuccessful", 1, "2Gi")
		if r := w.Runs[1]; r.Request.UID != string(prime.UID) || r.Request.Name != "data" {
			w.T.Errorf("the expand was asked for %+v", r.Request)
		}
	})
}

func TestAClassThatNoLongerAllowsExpansionExpandsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works)
		w.Start()
		w.provisioned("data")
		class := fakecluster.Get[*storagev1.StorageClass](w, "", "gold")
		fakecluster.Update(w, fakecluster.Admin, class, func(c *storagev1.StorageClass) { c.AllowVolumeExpansion = nil })
		w.Advance(time.Second)
		w.requestSize("2Gi")
		w.Advance(time.Hour)
		w.MustRun("provision")
		w.MustEmitSome(onData, "ExpansionNotSupported", "allowVolumeExpansion")
		fakecluster.Update(w, fakecluster.Admin, class, fakecluster.Expandable)
		w.Until("the claim has its size", time.Minute, w.hasSize("2Gi"))
	})
}

// Another client writes on the claim at the same time: nothing that it writes is lost.
func TestOtherConditionsOfTheClaimStay(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works)
		w.Start()
		w.provisioned("data")
		fakecluster.Update(w, "other", w.Claim("data"), func(c *corev1.PersistentVolumeClaim) {
			c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimVolumeModifyingVolume, Status: corev1.ConditionTrue}}
		})
		w.requestSize("2Gi")
		w.Until("the claim has its size", time.Minute, func() bool { return w.Claim("data").Status.Capacity.Storage().String() == "2Gi" })
		if got := w.Claim("data").Status.Conditions; len(got) != 1 || got[0].Type != corev1.PersistentVolumeClaimVolumeModifyingVolume {
			w.T.Errorf("the claim's conditions are %+v", got)
		}
	})
}
