package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// A PV under another name serves the claim all the same. What the image made is then in use, although nothing of
// it goes by the right name.
func TestItem02AVolumeUnderAnotherNameIsNotDeletedWhileItIsInUse(t *testing.T) {
	misnamed := func(pv *corev1.PersistentVolume) { pv.Name = "mine" }
	for name, spoil := range map[string]func(*corev1.PersistentVolume){
		"marked":   misnamed,
		"unmarked": func(pv *corev1.PersistentVolume) { misnamed(pv); pv.Annotations = nil },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.goldClass(always(spoils(spoil)))
				w.start()
				claim := w.claim("data")
				w.until("the claim is bound", time.Minute, w.bound("data"))
				w.run(time.Hour)
				w.mustRun("provision")
				w.mustTell("PersistentVolumeClaim/data", "ProvisioningFailed", 1, "PersistentVolume mine", contract.PVName(string(claim.UID)))
				w.mustSay("PersistentVolumeClaim/data", "VolumeInDoubt", "mine", "may be in use")
				if !w.storage[string(claim.UID)] {
					w.t.Error("the volume was deleted while the claim is bound")
				}
				drop(w, user, claim)
				w.until("the volume is undone", time.Minute, func() bool { return len(w.storage) == 0 && len(w.records()) == 0 })
			})
		})
	}
}

// Its owner has gone, and its policy keeps it.
func TestItem02ARetainedVolumeUnderAnotherNameOutlivesItsClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images[gold] = image{does: always(spoils(func(pv *corev1.PersistentVolume) { pv.Name = "mine" }))}
		w.class("gold", corev1.PersistentVolumeReclaimRetain)
		w.account("true")
		w.config("gold", "gold")
		w.start()
		claim := w.claim("data")
		w.until("the claim is bound", time.Minute, w.bound("data"))
		drop(w, user, claim)
		w.run(time.Hour)
		if !w.storage[string(claim.UID)] {
			w.t.Error("a retained volume was deleted")
		}
		w.mustRun("provision")
	})
}

// Of two PVs the claim is bound to one. The other says who wrote it, and nothing is lost by it.
func TestItem02TwoPVsLoseNothing(t *testing.T) {
	for _, second := range []string{"a-copy", "z-copy"} {
		t.Run(second, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.goldClass(always(func(r *run) ending {
					works(r)
					r.write(func(pv *corev1.PersistentVolume) { pv.Name = second })
					return ending{}
				}))
				w.start()
				claim := w.claim("data")
				w.until("the claim is bound", time.Minute, w.bound("data"))
				w.run(time.Hour)
				if !w.storage[string(claim.UID)] {
					w.t.Error("the volume was deleted while the claim is bound to " + w.now("data").Spec.VolumeName)
				}
				w.mustRun("provision")
				w.mustTell("PersistentVolumeClaim/data", "VolumeDiffers", 1, second, "wrong name")
				drop(w, user, claim)
				w.until("the volume is deleted", time.Minute, func() bool { return len(w.storage) == 0 && len(w.records()) == 0 && w.pvOf(claim) == nil })
				w.mustRun("provision", "delete")
			})
		})
	}
}

// A PV that an administrator wrote by hand for a claim that could not be served is no stray: what the runs before
// may have made is undone.
func TestItem02APVByHandIsNoStray(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(halfway(75)))
		w.start()
		claim := w.claim("data")
		w.until("the first run ended", time.Minute, func() bool { return len(w.runs) == 1 })
		add(w, admin, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "by-hand"},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: "gold", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				ClaimRef: &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			},
		})
		w.until("the claim is bound", time.Minute, w.bound("data"))
		w.until("what was made is undone", time.Minute, func() bool { return len(w.storage) == 0 && len(w.records()) == 0 })
		if w.now("data").Spec.VolumeName != "by-hand" {
			w.t.Error("the claim is bound to " + w.now("data").Spec.VolumeName)
		}
	})
}
