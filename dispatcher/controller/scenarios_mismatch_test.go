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
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// spoils makes the volume and writes a PV that is not what was asked for.
func spoils(change func(*corev1.PersistentVolume)) func(*fakecluster.Run) fakecluster.Exit {
	return func(r *fakecluster.Run) fakecluster.Exit {
		r.CreateVolume()
		r.WritePV(change)
		return fakecluster.Exit{}
	}
}

func tooSmall(pv *corev1.PersistentVolume) {
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
}

// smallWithoutClaimRef: one that is large enough would be bound to the claim by chance.
func smallWithoutClaimRef(pv *corev1.PersistentVolume) {
	tooSmall(pv)
	pv.Spec.ClaimRef = nil
}

// The claim's event says what is wrong with the PV, and the PV and its volume are taken back: when
// the image is fixed the claim is provisioned, and no person has to clean up.
func TestAPVThatDoesNotFitItsClaimIsReplaced(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*corev1.PersistentVolume)
		word  string
	}{
		"too small":      {tooSmall, "has the capacity 1Mi, and the claim requests 1Gi"},
		"a block device": {func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }, "volumeMode Block"},
		"read only": {func(pv *corev1.PersistentVolume) {
			pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		}, "access mode ReadWriteOnce"},
		"no finalizer":   {func(pv *corev1.PersistentVolume) { tooSmall(pv); pv.Finalizers = nil }, "has the capacity 1Mi"},
		"for a gone one": {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "gone" }, "has a claimRef to another claim"},
		"no size at all": {func(pv *corev1.PersistentVolume) { tooSmall(pv); pv.Spec.Capacity = nil }, "has the capacity 0"},
		"no revision":    {func(pv *corev1.PersistentVolume) { tooSmall(pv); delete(pv.Annotations, contract.AnnRevision) }, "has the capacity 1Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Always(spoils(test.spoil)))
				w.Images[newer] = fakecluster.Image{Does: fakecluster.Works}
				w.Start()
				claim := w.CreateClaim("data")
				w.Until("it was tried twice", time.Minute, func() bool { return len(w.RunsOf(contract.Provision)) == 2 })
				w.MustShow(map[string]string{"result": "failed", "exit-code": "0", "attempts": "1"})
				w.MustContain("PersistentVolumeClaim/data", "ProvisioningFailed", []string{"exit code 0, but", test.word})
				w.UpdateConfig("image", newer)
				w.Until("the claim is bound", time.Minute, w.IsBound("data"))
				w.Until("its records are released", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
				w.MustShow(map[string]string{"result": "succeeded", "attempts": "1"})
				if last := w.Runs[len(w.Runs)-1]; !w.Storage[string(claim.UID)] || last.Verb != contract.Provision {
					w.T.Errorf("ran %v, and the volume is there: %v", w.Verbs(), w.Storage[string(claim.UID)])
				}
				for _, r := range w.RunsOf(contract.Delete) {
					if r.Request.Undo == (name == "for a gone one") || r.PV.Spec.NFS == nil {
						w.T.Errorf("the delete was given %+v, and FLEX_UNDO %v", r.PV, r.Request.Undo)
					}
				}
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Until("nothing is left", time.Minute, w.Empty)
			})
		})
	}
}

// Its pauses grow as those of any failure.
func TestAnImageThatKeepsWritingSuchPVsIsBackedOff(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(spoils(tooSmall)), "max-attempts", "4")
		w.Start()
		claim := w.CreateClaim("data")
		w.Advance(time.Hour)
		if n := len(w.RunsOf(contract.Provision)); n != 4 {
			w.T.Errorf("%d attempts, want 4", n)
		}
		if len(w.Events.About("PersistentVolumeClaim/data", "Stalled")) == 0 {
			w.T.Error("nobody was told that it stopped")
		}
		if w.PVOf(claim) != nil || w.Storage[string(claim.UID)] {
			w.T.Error("the last PV or its volume is still there")
		}
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Minute, w.Empty)
	})
}

// What is larger, or of another class, serves; the second is said.
func TestAPVThatFitsItsClaimIsKeptWhateverElseDiffers(t *testing.T) {
	for name, spoil := range map[string]func(*corev1.PersistentVolume){
		"larger": func(pv *corev1.PersistentVolume) {
			pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		},
		"another class": func(pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = "tin" },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Always(spoils(spoil)))
				w.Start()
				claim := w.provisioned("data")
				w.Advance(time.Hour)
				w.MustRun("provision")
				odd := w.Events.About("PersistentVolumeClaim/data", "VolumeDiffers")
				if (len(odd) == 1) != (name == "another class") {
					w.T.Errorf("%d events tell that it differs", len(odd))
				}
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Until("nothing is left", time.Minute, w.Empty)
				w.MustRun("provision", "delete")
			})
		})
	}
}

// Once the claim is bound its PV is an administrator's to change.
func TestABoundPVIsNeverReplaced(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"attributes": func(pv *corev1.PersistentVolume) { pv.Spec.VolumeAttributesClassName = new("fast") },
		"modes":      func(pv *corev1.PersistentVolume) { pv.Spec.AccessModes = nil },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.Start()
				claim := w.provisioned("data")
				fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), change)
				w.Advance(time.Hour)
				if pv := w.PVOf(claim); pv == nil || pv.DeletionTimestamp != nil || !w.Storage[string(claim.UID)] {
					w.T.Error("the volume or its PV has gone")
				}
				w.MustRun("provision")
				w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
				w.Until("its finalizer follows its policy as ever", time.Minute, func() bool { return !w.heldByUs(claim) })
			})
		})
	}
}

// An administrator may be faster. What they have fixed is not deleted.
func TestAPVThatIsFixedAtTheLastMomentIsKept(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(spoils(tooSmall)))
		tried := false
		w.Server.Overtake(func(verb string, at fakecluster.Key, _ []byte) func(fakecluster.Object) {
			if tried || verb != "patch" || at.Resource != "persistentvolumes" {
				return nil
			}
			tried = true
			return func(pv fakecluster.Object) {
				pv.(*corev1.PersistentVolume).Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
			}
		})
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Until("its record was released", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
		w.Advance(time.Hour)
		if pv := w.PVOf(claim); pv == nil || pv.DeletionTimestamp != nil || !tried {
			w.T.Error("the PV was deleted, or nobody tried")
		}
		w.MustRun("provision")
		w.MustShow(map[string]string{"result": "succeeded"})
	})
}

// A PV that was deleted before its claim was bound to it can be bound to no claim, and the name is
// taken.
func TestAPVThatIsDeletedBeforeItIsBoundIsReplaced(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Script(func(r *fakecluster.Run) fakecluster.Exit {
			fakecluster.Works(r)
			fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*corev1.PersistentVolume](w, "", r.Request.PVName))
			return fakecluster.Exit{}
		}))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Until("its records are released", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
		w.MustRun("provision", "delete", "provision")
		if !w.Storage[string(claim.UID)] {
			w.T.Error("the volume is not there")
		}
	})
}

// The claim goes while its PV is taken back. What has begun goes on.
func TestAClaimThatIsDeletedWhileItsPVIsReplacedLeavesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Verb == contract.Delete && r.Number == 1 {
				fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
				return fakecluster.Exit{Code: 75}
			}
			return fakecluster.Always(spoils(tooSmall))(r)
		})
		w.Start()
		w.CreateClaim("data")
		w.Until("the delete failed", time.Minute, func() bool { return len(w.RunsOf(contract.Delete)) == 1 })
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete", "delete")
		for _, r := range w.RunsOf(contract.Delete) {
			if !r.Request.Undo || r.PV.Spec.NFS == nil {
				w.T.Errorf("the delete was given %+v, and FLEX_UNDO %v", r.PV, r.Request.Undo)
			}
		}
	})
}

// A class that retains its volumes has said so of this one as well.
func TestARetainedPVThatDoesNotFitIsKeptAndReported(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Script(spoils(tooSmall))}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimRetain)
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold")
		w.Start()
		claim := w.CreateClaim("data")
		w.Advance(time.Hour)
		w.MustRun("provision")
		w.MustEmitSome("PersistentVolumeClaim/data", "VolumeInDoubt", "has the capacity 1Mi", "Retain")
		w.setPolicy(claim, corev1.PersistentVolumeReclaimDelete)
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.MustRun("provision", "delete", "provision")
	})
}

// A PV that was written for another claim serves that one, and is left to it as long as it wants
// it.
func TestAPVThatIsBoundToAnotherClaimIsLeftToIt(t *testing.T) {
	inWorld(t, func(w *world) {
		other := w.CreateClaim("other", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("tin") })
		w.CreateClass("tin", corev1.PersistentVolumeReclaimDelete)
		w.SetUpGold(fakecluster.Script(spoils(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = "other", other.UID })))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the other is bound", time.Minute, w.IsBound("other"))
		w.Advance(time.Hour)
		w.MustRun("provision")
		w.MustEmitSome("PersistentVolumeClaim/data", "VolumeInDoubt", "has a claimRef to another claim, app/other")
		if !w.Storage[string(claim.UID)] {
			w.T.Fatal("the other claim's volume has gone")
		}
		fakecluster.Delete(w, fakecluster.User, other)
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.MustRun("provision", "delete", "provision")
	})
}

// The claim goes between the PV's deletion and the start of the run that deletes its volume, when
// only the PV says that no claim was ever bound to it.
func TestAnUnboundPVIsReclaimedAlthoughItsClaimIsDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Script(spoils(tooSmall)))
		w.Server.Refuse(func(_, verb string, obj fakecluster.Object) error {
			pod, ok := obj.(*corev1.Pod)
			if ok && verb == "patch" && pod.Labels[jobs.LabelVerb] == string(contract.Delete) && len(pod.Spec.SchedulingGates) == 0 && pod.Spec.NodeName == "" {
				return apierrors.NewForbidden(schema.GroupResource{}, obj.GetName(), errors.New("not now"))
			}
			return nil
		})
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the PV is replaced", time.Minute, func() bool {
			pv := w.PVOf(claim)
			return pv != nil && pv.DeletionTimestamp != nil
		})
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(time.Minute)
		w.Server.Refuse(nil)
		w.Until("nothing is left", time.Hour, w.Empty)
	})
}

// Nothing proves that no claim was ever bound to it: an administrator, too, takes a claimRef off.
func TestNeverBoundIsNotAPVWithoutAClaimRef(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Script(spoils(smallWithoutClaimRef)))
		w.Start()
		claim := w.CreateClaim("data")
		w.mustKeepVolume(claim)
		w.MustRun("provision")
		w.MustEmitSome("PersistentVolumeClaim/data", "VolumeInDoubt", "has no claimRef", "To keep the data, set the reclaim policy to Retain")
		w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
		fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.MustRun("provision", "provision")
	})
}

// A backup was restored without the UIDs of claims, or a released PV was handed to whoever has a
// name: it looks like one that was just written.
func TestNeverBoundIsNotAPVWhoseClaimNoLongerExists(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"no UID":      func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "" },
		"no claimRef": func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.Start()
				claim := w.provisioned("data")
				w.BinderDown = true
				fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), change)
				fakecluster.Update(w, fakecluster.Admin, w.Claim("data"), func(c *corev1.PersistentVolumeClaim) { c.Finalizers = nil })
				fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
				w.BinderDown = false
				w.mustKeepVolume(claim)
				pv := "PersistentVolume/" + w.PVOf(claim).Name
				w.MustContain(pv, "VolumeInDoubt", []string{"To keep the data, set the reclaim policy to Retain"})
				if len(w.Events.About(pv, "VolumeInDoubt")) == 0 {
					w.T.Error("nothing says why the volume is kept")
				}
				w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
				fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
				w.Until("the PV no longer exists", time.Minute, func() bool { return w.PVOf(claim) == nil })
				w.mustKeepVolume(claim)
				w.MustRun("provision")
			})
		})
	}
}
