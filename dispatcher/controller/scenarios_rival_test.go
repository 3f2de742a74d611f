package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// A PV under another name serves the claim all the same. What the image made is then in use,
// although nothing of it goes by the right name.
func TestARivalPVInUseKeepsItsVolume(t *testing.T) {
	misnamed := func(pv *corev1.PersistentVolume) { pv.Name = "mine" }
	for name, spoil := range map[string]func(*corev1.PersistentVolume){
		"marked":   misnamed,
		"unmarked": func(pv *corev1.PersistentVolume) { misnamed(pv); pv.Annotations = nil },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Always(spoils(spoil)))
				w.Start()
				claim := w.CreateClaim("data")
				w.Until("the claim is bound", time.Minute, w.IsBound("data"))
				w.Advance(time.Hour)
				w.MustRun("provision")
				w.MustEmit("PersistentVolumeClaim/data", "ProvisioningFailed", 1, "PersistentVolume mine", contract.PVName(string(claim.UID)))
				w.MustEmitSome("PersistentVolumeClaim/data", "VolumeInDoubt", "mine", "may be in use")
				if !w.Storage[string(claim.UID)] {
					w.T.Error("the volume was deleted while the claim is bound")
				}
				fakecluster.Delete(w, fakecluster.User, claim)
				w.mustKeepVolume(claim)
				fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*corev1.PersistentVolume](w, "", "mine"))
				w.Advance(time.Minute)
				fakecluster.Update(w, fakecluster.Admin, w.jobOf(claim), func(job *batchv1.Job) { job.Annotations[jobs.AnnForget] = string(claim.UID) })
				w.Until("the record is given up", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
				w.mustKeepVolume(claim)
			})
		})
	}
}

// Its claim was deleted, and its policy keeps it.
func TestARetainedRivalPVKeepsItsVolume(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Always(spoils(func(pv *corev1.PersistentVolume) { pv.Name = "mine" }))}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimRetain)
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold")
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(time.Hour)
		if !w.Storage[string(claim.UID)] {
			w.T.Error("a retained volume was deleted")
		}
		w.MustRun("provision")
	})
}

// Of two PVs the claim is bound to one. The other says who wrote it, and nothing is lost by it.
func TestTwoPVsOfOneVolumeLoseNothing(t *testing.T) {
	for _, second := range []string{"a-copy", "z-copy"} {
		t.Run(second, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
					fakecluster.Works(r)
					r.WritePV(func(pv *corev1.PersistentVolume) { pv.Name = second })
					return fakecluster.Exit{}
				}))
				w.Start()
				claim := w.CreateClaim("data")
				w.Until("the claim is bound", time.Minute, w.IsBound("data"))
				w.Advance(time.Hour)
				if !w.Storage[string(claim.UID)] {
					w.T.Error("the volume was deleted while the claim is bound to " + w.Claim("data").Spec.VolumeName)
				}
				w.MustRun("provision")
				w.MustEmit("PersistentVolumeClaim/data", "VolumeDiffers", 1, second, "wrong name")
				fakecluster.Delete(w, fakecluster.User, claim)
				w.mustKeepVolume(claim)
				fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*corev1.PersistentVolume](w, "", second))
				w.Advance(time.Minute)
				fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) {
					pv.Spec.PersistentVolumeReclaimPolicy, pv.Spec.ClaimRef.UID = corev1.PersistentVolumeReclaimDelete, claim.UID
				})
				w.Until("the volume is deleted", time.Minute, func() bool { return len(w.Storage) == 0 && len(w.HeldRecords()) == 0 && w.PVOf(claim) == nil })
				w.MustRun("provision", "delete")
			})
		})
	}
}

// A PV by hand that is older than the claim's runs is an ordinary static binding: what the runs may
// have made is undone.
func TestAPVByHandBeforeTheFirstRunIsNoRival(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		w.BinderDown = true
		claim := w.CreateClaim("data")
		fakecluster.Create(w, fakecluster.Admin, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "by-hand"},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: "gold", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				ClaimRef: &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			},
		})
		w.Advance(2 * time.Minute)
		fakecluster.Update(w, "kube-controller-manager", w.Claim("data"), func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{storagehelpers.AnnStorageProvisioner: contract.ProvisionerName, storagehelpers.AnnBetaStorageProvisioner: contract.ProvisionerName}
		})
		w.Start()
		w.Until("the first run ended", time.Minute, func() bool { return len(w.Runs) == 1 })
		w.BinderDown = false
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Until("what was made is undone", time.Minute, func() bool { return len(w.Storage) == 0 && len(w.HeldRecords()) == 0 })
		if w.Claim("data").Spec.VolumeName != "by-hand" {
			w.T.Error("the claim is bound to " + w.Claim("data").Spec.VolumeName)
		}
	})
}
