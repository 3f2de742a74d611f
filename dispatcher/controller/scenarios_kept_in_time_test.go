package controller_test

import (
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// deleteThatWaits leaves the delete of a volume whose pod waits for its image.
func (w *world) deleteThatWaits() *corev1.PersistentVolumeClaim {
	w.SetUpGold(fakecluster.Works)
	w.Start()
	claim := w.provisioned("data")
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Waits: "ErrImagePull"}
	fakecluster.Delete(w, fakecluster.User, claim)
	w.Until("the delete's Job is created", time.Minute, func() bool { return len(w.CreatedJobs(contract.Delete)) == 1 })
	w.Advance(2 * time.Second)
	return claim
}

// passOn passes the volume of a claim on to another claim, by a PV by hand.
func (w *world) passOn(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	pv := w.rescuedBy("rescued", claim, "/"+contract.PVName(string(claim.UID)), func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: "next"}
	})
	w.CreateClaim("next", func(next *corev1.PersistentVolumeClaim) { next.Spec.VolumeName = pv.Name })
	return pv
}

// isRetained reports whether the PV of a claim has the policy Retain, or was released after that: it is being deleted.
func (w *world) isRetained(claim *corev1.PersistentVolumeClaim) func() bool {
	return func() bool {
		pv := w.PVOf(claim)
		return pv == nil || pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
	}
}

// refuseOf refuses what the dispatcher writes of a kind by a verb.
func refuseOf[T fakecluster.Object](verb string, cause error) func(by, verb string, obj fakecluster.Object) error {
	return func(by, does string, obj fakecluster.Object) error {
		if _, is := obj.(T); is && does == verb && by == "dispatcher" {
			return cause
		}
		return nil
	}
}

func failures() map[string]error {
	return map[string]error{
		"refused": apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "x", errors.New("a policy refuses it")),
		"fails":   apierrors.NewInternalError(errors.New("failed calling webhook")),
	}
}

// A delete of a volume that an administrator passed on meanwhile once started, since the write that keeps the volume
// waited for room for its event.
func TestADeleteIsCancelledAlsoWhereEventsAreDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		w.recorder = func(inner events.EventRecorder) events.EventRecorder {
			return &full{EventRecorder: inner, until: time.Now().Add(24 * time.Hour), now: time.Now}
		}
		claim := w.deleteThatWaits()
		w.passOn(claim)
		w.Advance(20 * time.Second)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.Until("its PV has the policy Retain", time.Minute, w.isRetained(claim))
		w.Advance(time.Hour)
		w.mustKeepVolume(claim)
	})
}

// Where the policy Retain cannot be set, the delete is still cancelled.
func TestADeleteIsCancelledAlsoWhereItsVolumeCannotBeKept(t *testing.T) {
	for name, cause := range failures() {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				claim := w.deleteThatWaits()
				w.Server.Refuse(refuseOf[*corev1.PersistentVolume]("patch", cause))
				w.passOn(claim)
				w.Advance(20 * time.Second)
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
				w.Advance(10 * time.Minute)
				w.mustKeepVolume(claim)
				w.Server.Refuse(nil)
				w.Until("its PV has the policy Retain", 10*time.Minute, w.isRetained(claim))
			})
		})
	}
}

// Where the delete cannot be cancelled, the volume is still kept for when it can, also if the PV by which an
// administrator keeps it is deleted by then.
func TestAVolumeIsKeptAlsoWhereItsDeleteCannotBeCancelled(t *testing.T) {
	for name, cause := range failures() {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				claim := w.deleteThatWaits()
				w.Server.Refuse(refuseOf[*batchv1.Job]("delete", cause))
				pv := w.passOn(claim)
				w.Until("its PV has the policy Retain", time.Minute, w.isRetained(claim))
				fakecluster.Delete(w, fakecluster.User, w.Claim("next"))
				fakecluster.Delete(w, fakecluster.Admin, pv)
				w.Advance(2 * time.Second)
				w.Server.Refuse(nil)
				w.Advance(2 * time.Minute)
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
				w.Advance(time.Hour)
				w.mustKeepVolume(claim)
			})
		})
	}
}
