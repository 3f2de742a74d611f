package controller_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// What the caches do not keep of an object, other clients have written there.

// foreign is what others write on an object.
const foreign = "example.com/"

// writtenByOthers adds labels, annotations, a finalizer and an owner to an object, more than the
// caches keep.
func writtenByOthers(obj fakecluster.Object) {
	labels, annotations := maps.Clone(obj.GetLabels()), maps.Clone(obj.GetAnnotations())
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[foreign+"label"], annotations[foreign+"note"] = "kept", strings.Repeat("x", 100<<10)
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
	obj.SetFinalizers(append(slices.Clone(obj.GetFinalizers()), foreign+"finalizer"))
	obj.SetOwnerReferences(append(slices.Clone(obj.GetOwnerReferences()), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "owner"}))
}

// mustKeepWhatOthersWrote checks that an object has still what writtenByOthers added.
func (w *world) mustKeepWhatOthersWrote(obj fakecluster.Object) {
	w.T.Helper()
	if obj.GetLabels()[foreign+"label"] == "" || len(obj.GetAnnotations()[foreign+"note"]) != 100<<10 ||
		!slices.Contains(obj.GetFinalizers(), foreign+"finalizer") ||
		!slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Name == "owner" }) {
		w.T.Errorf("%T %s has lost what others wrote: %v, %d annotations, %v, %v", obj, obj.GetName(), obj.GetLabels(), len(obj.GetAnnotations()),
			obj.GetFinalizers(), obj.GetOwnerReferences())
	}
	if _, marked := obj.GetAnnotations()[config.AnnCut]; marked {
		w.T.Errorf("%T %s is marked as cut", obj, obj.GetName())
	}
}

// Patches are computed from objects of the caches, of which only a part is kept.
func TestNoWriteTakesAwayWhatTheCachesDoNotKeep(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(roomOn("node-2"), []string{"node-1", "node-2"}, "verbs", "provision,delete,expand")
		fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*storagev1.StorageClass](w, "", "gold"), fakecluster.Expandable)
		w.Start()
		w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) { writtenByOthers(c) })
		w.Until("its first Job is there", time.Minute, func() bool { return len(fakecluster.List[*batchv1.Job](w)) > 0 })
		for _, job := range fakecluster.List[*batchv1.Job](w) {
			fakecluster.Update(w, fakecluster.Admin, job, func(j *batchv1.Job) { writtenByOthers(j) })
		}
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.MustShow(map[string]string{"result": "succeeded", "attempts": "2"}) // between the two the scheduler chose another node
		fakecluster.Update(w, fakecluster.Admin, w.PVOf(w.Claim("data")), func(pv *corev1.PersistentVolume) { writtenByOthers(pv) })
		fakecluster.Update(w, "kube-controller-manager", w.Claim("data"), func(c *corev1.PersistentVolumeClaim) {
			c.Status.Conditions = append(c.Status.Conditions, corev1.PersistentVolumeClaimCondition{Type: "example.com/Known", Status: corev1.ConditionTrue})
		})
		w.requestSize("2Gi")
		w.Advance(time.Minute)
		claim := w.Claim("data")
		if got := claim.Status.Capacity.Storage().String(); got != "2Gi" || len(claim.Status.Conditions) != 1 {
			w.T.Errorf("the claim has %s, and the conditions %+v", got, claim.Status.Conditions)
		}
		w.mustKeepWhatOthersWrote(claim)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(time.Second)
		fakecluster.RemoveFinalizer(w, fakecluster.User, w.Claim("data"), foreign+"finalizer")
		w.Until("the volume is deleted", time.Minute, func() bool { return len(w.Storage) == 0 })
		w.Advance(time.Hour)
		pv := w.PVOf(claim)
		w.mustKeepWhatOthersWrote(pv)
		if slices.Contains(pv.Finalizers, contract.FinalizerStorage) {
			w.T.Error("the PV was not let go")
		}
		kept := 0
		for _, job := range fakecluster.List[*batchv1.Job](w) {
			if job.Labels[foreign+"label"] != "" {
				kept++
				w.mustKeepWhatOthersWrote(job)
				if slices.Contains(job.Finalizers, jobs.FinalizerRecord) {
					w.T.Errorf("the record of %s was not released", job.Name)
				}
			}
		}
		if kept != 1 {
			w.T.Errorf("%d Jobs have what others wrote, want the first one", kept)
		}
	})
}

// The record of the run that may have made something is taken away by hand, and nothing ever ran of
// the next one.
func TestUndoOfARunWhoseRecordIsReleasedHasItsWholeRequest(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)), "ca", "a certificate", "timeout", "1m")
		w.Start()
		claim := w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"app": "web"} })
		w.Until("the first run ended", time.Minute, func() bool { return len(w.Runs) == 1 })
		image := w.Images[fakecluster.GoldImage]
		image.Waits = "ErrImagePull"
		w.Images[fakecluster.GoldImage] = image
		w.Until("the second was given up", 10*time.Minute, func() bool { return w.Claim("data").Annotations[contract.AnnAttempts] == "2" })
		first := fakecluster.Get[*batchv1.Job](w, fakecluster.ConfigNamespace, w.CreatedJobs(contract.Provision)[0].Name)
		fakecluster.RemoveFinalizer(w, fakecluster.Admin, first, jobs.FinalizerRecord)
		image.Waits = ""
		w.Images[fakecluster.GoldImage] = image
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("it is undone", 10*time.Minute, func() bool { return len(w.Storage) == 0 })
		undone, undo := w.Runs[0], w.Runs[len(w.Runs)-1]
		w.MustUndo(undo, undone)
		if undo.Request.Properties["ca"] != "a certificate" || undo.Request.Labels["app"] != "web" || undo.Request.PVName != undone.Request.PVName {
			w.T.Errorf("the undo was given %+v, the run that it undoes %+v", undo.Request, undone.Request)
		}
	})
}

// The older way to ask for a clone is an annotation. A run may be counted only when the claim is
// bound.
func TestACloneByAnnotationIsCountedByItsSource(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
		w.Start()
		w.CreateClaim("other")
		w.Until("the source is bound", time.Minute, w.IsBound("other"))
		w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{contract.AnnCloneRequest: "other"}
		})
		w.Until("the copy is made", time.Minute, func() bool { return len(w.RunningPods()) > 0 })
		w.Stop()
		w.Until("the copy is bound", time.Minute, w.IsBound("data"))
		w.Start()
		w.Advance(time.Minute)
		w.mustCount([]string{"controller_persistentvolumeclaim_provision_total"}, map[string]float64{
			`controller_persistentvolumeclaim_provision_total{class="gold",source="PersistentVolumeClaim"}`: 1,
		})
	})
}
