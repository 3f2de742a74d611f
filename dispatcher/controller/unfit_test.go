package controller_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// spoils makes the volume and writes a PV that is not what was asked for.
func spoils(change func(*corev1.PersistentVolume)) func(*run) ending {
	return func(r *run) ending { r.make(); r.write(change); return ending{} }
}

func tooSmall(pv *corev1.PersistentVolume) {
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
}

// smallForNobody: one that is large enough would be bound to the claim by chance.
func smallForNobody(pv *corev1.PersistentVolume) {
	tooSmall(pv)
	pv.Spec.ClaimRef = nil
}

// The claim's event says what is wrong with the PV, and the PV and its volume are taken back: when the image is
// mended the claim is served, and nobody has to clean up by hand.
func TestItem02APVThatTheClaimCannotBeBoundToIsTakenBack(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*corev1.PersistentVolume)
		word  string
	}{
		"too small":      {tooSmall, "has 1Mi, and 1Gi was asked for"},
		"a block device": {func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }, "volumeMode Block"},
		"read only": {func(pv *corev1.PersistentVolume) {
			pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		}, "access mode ReadWriteOnce"},
		"no finalizer":   {func(pv *corev1.PersistentVolume) { tooSmall(pv); pv.Finalizers = nil }, "has 1Mi"},
		"for nobody":     {smallForNobody, "has no claimRef"},
		"for a gone one": {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "gone" }, "is for another claim"},
		"no size at all": {func(pv *corev1.PersistentVolume) { tooSmall(pv); pv.Spec.Capacity = nil }, "has 0"},
		"no revision":    {func(pv *corev1.PersistentVolume) { tooSmall(pv); delete(pv.Annotations, contract.AnnRevision) }, "has 1Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.goldClass(always(spoils(test.spoil)))
				w.images[newer] = image{does: works}
				w.start()
				claim := w.claim("data")
				w.until("it was tried twice", time.Minute, func() bool { return len(w.ran(contract.Provision)) == 2 })
				w.mustShow(map[string]string{"result": "failed", "exit-code": "0", "attempts": "1"})
				w.mustHave("PersistentVolumeClaim/data", "ProvisioningFailed", []string{"exit code 0, but", test.word})
				w.reconfigure("image", newer)
				w.until("the claim is bound", time.Minute, w.bound("data"))
				w.until("its records are released", time.Minute, func() bool { return len(w.records()) == 0 })
				w.mustShow(map[string]string{"result": "succeeded", "attempts": "1"})
				if last := w.runs[len(w.runs)-1]; !w.storage[string(claim.UID)] || last.verb != contract.Provision {
					w.t.Errorf("ran %v, and the volume is there: %v", w.verbs(), w.storage[string(claim.UID)])
				}
				for _, r := range w.ran(contract.Delete) {
					if r.request.Undo || r.pv.Spec.NFS == nil {
						w.t.Errorf("the delete was given %+v", r.pv)
					}
				}
				drop(w, user, claim)
				w.until("nothing is left", time.Minute, w.empty)
			})
		})
	}
}

// Its pauses grow as those of any failure.
func TestItem02AnImageThatIsNotMendedIsNotStormedAt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(spoils(tooSmall)), "max-attempts", "4")
		w.start()
		claim := w.claim("data")
		w.run(time.Hour)
		if n := len(w.ran(contract.Provision)); n != 4 {
			w.t.Errorf("%d attempts, want 4", n)
		}
		if len(w.events.said("PersistentVolumeClaim/data", "Stalled")) == 0 {
			w.t.Error("nobody was told that it stopped")
		}
		if w.pvOf(claim) != nil || w.storage[string(claim.UID)] {
			w.t.Error("the last PV or its volume is still there")
		}
		drop(w, user, claim)
		w.until("nothing is left", time.Minute, w.empty)
	})
}

// What is larger, or of another class, serves; the second is said.
func TestItem02AVolumeThatServesIsKeptWhateverElseItIs(t *testing.T) {
	for name, spoil := range map[string]func(*corev1.PersistentVolume){
		"larger": func(pv *corev1.PersistentVolume) {
			pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		},
		"another class": func(pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = "tin" },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.goldClass(always(spoils(spoil)))
				w.start()
				claim := w.settled("data")
				w.run(time.Hour)
				w.mustRun("provision")
				odd := w.events.said("PersistentVolumeClaim/data", "VolumeDiffers")
				if (len(odd) == 1) != (name == "another class") {
					w.t.Errorf("%d events tell that it differs", len(odd))
				}
				drop(w, user, claim)
				w.until("nothing is left", time.Minute, w.empty)
				w.mustRun("provision", "delete")
			})
		})
	}
}

// Once the claim is bound its PV is an administrator's to change.
func TestItem02ABoundVolumeIsNeverTakenBackForADifference(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"attributes": func(pv *corev1.PersistentVolume) { pv.Spec.VolumeAttributesClassName = new("fast") },
		"modes":      func(pv *corev1.PersistentVolume) { pv.Spec.AccessModes = nil },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.goldClass(works)
				w.start()
				claim := w.settled("data")
				edit(w, admin, w.pvOf(claim), change)
				w.run(time.Hour)
				if pv := w.pvOf(claim); pv == nil || pv.DeletionTimestamp != nil || !w.storage[string(claim.UID)] {
					w.t.Error("the volume or its PV has gone")
				}
				w.mustRun("provision")
				w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
				w.until("its finalizer follows its policy as ever", time.Minute, func() bool { return !w.heldByUs(claim) })
			})
		})
	}
}

// An administrator may be faster. What he has mended is not deleted.
func TestItem02APVThatIsMendedAtTheLastMomentIsKept(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(spoils(tooSmall)))
		w.server.meddle = func(at place) {
			pv, found := w.server.objects[at].(*corev1.PersistentVolume)
			if !found {
				return
			}
			pv = pv.DeepCopy()
			pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
			if _, err := w.server.update(admin, "update", at, pv); err != nil {
				w.t.Error(err)
			}
			w.server.meddle = nil
		}
		w.start()
		claim := w.claim("data")
		w.until("the claim is bound", time.Minute, w.bound("data"))
		w.until("its record is released", time.Minute, func() bool { return len(w.records()) == 0 })
		w.run(time.Hour)
		if pv := w.pvOf(claim); pv == nil || pv.DeletionTimestamp != nil || w.server.meddle != nil {
			w.t.Error("the PV was deleted, or nobody tried")
		}
		w.mustRun("provision")
		w.mustShow(map[string]string{"result": "succeeded"})
	})
}

// A PV that was deleted before its claim was bound to it can serve nobody, and the name is taken.
func TestItem02APVThatIsDeletedBeforeItIsBoundIsReplaced(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(script(func(r *run) ending {
			works(r)
			drop(w, admin, get[*corev1.PersistentVolume](w, "", r.request.PVName))
			return ending{}
		}))
		w.start()
		claim := w.claim("data")
		w.until("the claim is bound", time.Minute, w.bound("data"))
		w.until("its records are released", time.Minute, func() bool { return len(w.records()) == 0 })
		w.mustRun("provision", "delete", "provision")
		if !w.storage[string(claim.UID)] {
			w.t.Error("the volume is not there")
		}
	})
}

// The claim goes while its PV is taken back. What has begun goes on.
func TestItem02AClaimThatGoesMeanwhileLeavesNothing(t *testing.T) {
	for name, spoil := range map[string]func(*corev1.PersistentVolume){
		"too small": tooSmall, "for nobody": smallForNobody,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.goldClass(func(r *run) ending {
					if r.verb == contract.Delete && r.number == 1 {
						drop(w, user, w.now("data"))
						return ending{75, ""}
					}
					return always(spoils(spoil))(r)
				})
				w.start()
				w.claim("data")
				w.until("the delete failed", time.Minute, func() bool { return len(w.ran(contract.Delete)) == 1 })
				w.until("nothing is left", time.Minute, w.empty)
				w.mustRun("provision", "delete", "delete")
			})
		})
	}
}

// A class that retains its volumes has said so of this one as well.
func TestItem02ARetainedPVIsKeptAndTold(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images[gold] = image{does: script(spoils(tooSmall))}
		w.class("gold", corev1.PersistentVolumeReclaimRetain)
		w.account("true")
		w.config("gold", "gold")
		w.start()
		claim := w.claim("data")
		w.run(time.Hour)
		w.mustRun("provision")
		w.mustSay("PersistentVolumeClaim/data", "VolumeInDoubt", "has 1Mi", "Retain")
		w.setPolicy(claim, corev1.PersistentVolumeReclaimDelete)
		w.until("the claim is bound", time.Minute, w.bound("data"))
		w.mustRun("provision", "delete", "provision")
	})
}

// A PV that was written for another claim serves that one, and is left to it as long as it wants it.
func TestItem02APVThatIsBoundToAnotherClaimIsLeftToIt(t *testing.T) {
	inWorld(t, func(w *world) {
		other := w.claim("other", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("tin") })
		w.class("tin", corev1.PersistentVolumeReclaimDelete)
		w.goldClass(script(spoils(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = "other", other.UID })))
		w.start()
		claim := w.claim("data")
		w.until("the other is bound", time.Minute, w.bound("other"))
		w.run(time.Hour)
		w.mustRun("provision")
		w.mustSay("PersistentVolumeClaim/data", "VolumeInDoubt", "for another claim by its claimRef, app/other")
		if !w.storage[string(claim.UID)] {
			w.t.Fatal("the other claim's volume has gone")
		}
		drop(w, user, other)
		w.until("the claim is bound", time.Minute, w.bound("data"))
		w.mustRun("provision", "delete", "provision")
	})
}

// The claim goes between the PV's deletion and the Job that deletes its volume, when nothing but the PV tells that
// nobody was ever bound to it.
func TestItem02AWithdrawnPVGoesAlthoughItsClaimDoes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(script(spoils(smallForNobody)))
		w.server.refusing(func(_, verb string, obj object) error {
			if verb == "create" && obj.GetLabels()[jobs.LabelVerb] == string(contract.Delete) {
				return apierrors.NewForbidden(schema.GroupResource{}, obj.GetName(), errors.New("not now"))
			}
			return nil
		})
		w.start()
		claim := w.claim("data")
		w.until("the PV is withdrawn", time.Minute, func() bool {
			pv := w.pvOf(claim)
			return pv != nil && pv.DeletionTimestamp != nil
		})
		drop(w, user, claim)
		w.run(time.Minute)
		w.server.refusing(nil)
		w.until("nothing is left", time.Hour, w.empty)
	})
}
