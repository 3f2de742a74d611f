package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// mustKeepVolume lets an hour pass and checks that the volume of a claim is still in the storage.
func (w *world) mustKeepVolume(claim *corev1.PersistentVolumeClaim) {
	w.T.Helper()
	w.Advance(time.Hour)
	if !w.Storage[string(claim.UID)] {
		w.T.Fatalf("the volume was deleted; ran %v", w.Verbs())
	}
}

// A pod of a delete that could not start (quota, image, node) once deleted the volume when it
// started at last, although an administrator had kept the volume meanwhile.
func TestReclaimByPVIsCancelledWithoutItsReason(t *testing.T) {
	for name, rescue := range map[string]func(w *world, claim *corev1.PersistentVolumeClaim){
		"policy Retain": func(w *world, claim *corev1.PersistentVolumeClaim) {
			w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
		},
		"Retain, and handed to another claim": func(w *world, claim *corev1.PersistentVolumeClaim) {
			w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
			next := w.CreateClaim("rescued", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = contract.PVName(string(claim.UID)) })
			fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) {
				pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = "rescued", next.UID
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.Start()
				claim := w.provisioned("data")
				w.NoPodFor["data"] = true
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Until("the delete's Job is created", time.Minute, func() bool { return len(w.CreatedJobs(contract.Delete)) == 1 })
				w.Advance(2 * time.Minute)
				rescue(w, claim)
				w.Advance(2 * time.Minute)
				w.NoPodFor["data"] = false
				w.mustKeepVolume(claim)
				if held := w.HeldRecords(); len(held) > 0 {
					w.T.Errorf("records are held for a volume that is kept: %v", held)
				}
			})
		})
	}
}

// The administrator completes by hand the PV whose undo waits for a pod.
func TestAbandonedIsNotUndoneOnceItsPVExists(t *testing.T) {
	const newer = "localhost/gold:v2"
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the first run failed", time.Minute, func() bool { return len(w.RunsOf(contract.Provision)) == 1 })
		pv := w.Runs[0].PV.DeepCopy()
		w.NoPodFor["data"] = true
		w.Images[newer] = fakecluster.Image{Does: fakecluster.Works}
		w.UpdateConfig("image", newer) // the undo runs under the old revision
		w.Until("the undo's Job is created", time.Minute, func() bool { return len(w.CreatedJobs(contract.Delete)) == 1 })
		pv.Spec.NFS = &corev1.NFSVolumeSource{Server: "10.10.2.4", Path: "/" + pv.Name}
		fakecluster.Create(w, fakecluster.Admin, pv)
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Advance(3 * time.Minute)
		w.NoPodFor["data"] = false
		w.mustKeepVolume(claim)
	})
}

// All replicas are away while a claim lives its whole life. Its class retains volumes, so the
// administrator deletes the PV to keep the volume. The run that wrote the PV is recorded
// afterwards.
func TestRecordBeforeStorageKnowsARetainedPVThatWasDeletedUnseen(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 10 * time.Second}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimRetain)
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold")
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("its Job is created", time.Minute, func() bool { return len(w.CreatedJobs("")) == 1 })
		w.Advance(2 * time.Second)
		w.Stop()
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Advance(time.Hour)
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Until("the PV is released", time.Minute, func() bool { return w.PVOf(claim).Status.Phase == corev1.VolumeReleased })
		fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
		w.Advance(time.Minute)
		w.Start()
		w.mustKeepVolume(claim)
		if w.PVOf(claim) != nil || len(w.HeldRecords()) > 0 {
			w.T.Errorf("left: PV %v, records %v", w.PVOf(claim), w.HeldRecords())
		}
	})
}

// An image named its PV wrongly, dropped the annotations and failed a command later. The claim is
// bound to that PV.
func TestARivalPVOfAFailedRunKeepsItsVolume(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
			r.CreateVolume()
			r.WritePV(func(pv *corev1.PersistentVolume) { pv.Name, pv.Annotations = "mine", nil })
			return fakecluster.Exit{Code: 75}
		}))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.mustKeepVolume(claim)
	})
}

// An administrator writes a PV by hand for the volume of a run that could not write its own.
func TestARivalPVByHandKeepsItsVolume(t *testing.T) {
	for name, code := range map[string]int32{"the next run works": 75, "no other run follows soon": 73} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Always(fakecluster.Halfway(code)))
				w.Start()
				claim := w.CreateClaim("data")
				w.Until("the first run failed", time.Minute, func() bool { return len(w.Runs) == 1 })
				w.Advance(time.Second / 2) // its outcome is on record, and no other run has begun
				fakecluster.Create(w, fakecluster.Admin, &corev1.PersistentVolume{
					ObjectMeta: metav1.ObjectMeta{Name: "rescued"},
					Spec: corev1.PersistentVolumeSpec{
						StorageClassName: "gold", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
						Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
						ClaimRef:               &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
						PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.10.2.4", Path: "/" + contract.PVName(string(claim.UID))}},
					},
				})
				w.Until("the claim is bound", time.Minute, w.IsBound("data"))
				w.mustKeepVolume(claim)
			})
		})
	}
}

// Whatever has become of a PV with our finalizer, `kubectl delete pv` takes it away in the end.
func TestFinalizerWayOutOfAPVWithoutAClaimRef(t *testing.T) {
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete} {
		t.Run(string(policy), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.Start()
				claim := w.provisioned("data")
				w.Advance(time.Hour)
				fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })
				w.BinderDown = true
				fakecluster.Update(w, "kube-controller-manager", w.Claim("data"), func(c *corev1.PersistentVolumeClaim) { c.Finalizers = nil })
				fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
				w.BinderDown = false
				w.Advance(time.Minute)
				w.setPolicy(claim, policy)
				w.Advance(time.Minute)
				fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
				w.Until("the PV no longer exists", time.Hour, func() bool { return w.PVOf(claim) == nil })
				if !w.Storage[string(claim.UID)] {
					w.T.Error("the volume was deleted, although an administrator took its claimRef off")
				}
			})
		})
	}
}

// VolumeInDoubt says: delete the PersistentVolume.
func TestFinalizerWayOutByTheRemedyOfVolumeInDoubt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
			r.CreateVolume()
			r.WritePV(func(pv *corev1.PersistentVolume) { delete(pv.Annotations, contract.AnnClaimUID) })
			return fakecluster.Exit{}
		}))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Advance(time.Minute)
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Advance(time.Minute)
		fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
		w.Until("the PV no longer exists", time.Hour, func() bool { return w.PVOf(claim) == nil })
	})
}

// The finalizer was removed by hand while the delete still waited for its image.
func TestAVolumeWhosePVWasRemovedByHandIsReportedAsLeftBehind(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		w.NoPodFor["data"] = true
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("a delete waits", time.Minute, func() bool { return len(w.CreatedJobs(contract.Delete)) == 1 })
		name := w.CreatedJobs(contract.Delete)[0].Name
		pv := w.PVOf(claim)
		fakecluster.Delete(w, fakecluster.Admin, pv)
		fakecluster.RemoveFinalizer(w, fakecluster.Admin, pv, contract.FinalizerStorage)
		w.Until("its record was released", time.Hour, func() bool { return len(w.HeldRecords()) == 0 })
		w.MustEmit("Job/"+name, "LeftBehind", 1, "app/data", "PersistentVolume was removed")
		if !w.Storage[string(claim.UID)] {
			w.T.Error("the volume was deleted after all")
		}
	})
}
