package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// full is a recorder that is full for a while, as internal/eventlimit is in a burst.
type full struct {
	events.EventRecorder
	until time.Time
	now   func() time.Time
}

func (f *full) IsFull(string) bool { return f.now().Before(f.until) }

//nolint:revive // client-go's own arguments
func (f *full) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	if !f.IsFull("") {
		f.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
	}
}

// The pod of a delete waits for its image, and an administrator passes the volume on meanwhile. The
// delete started where the write that keeps the volume waited for room for its event.
func TestADeleteIsCancelledAlsoWhereEventsAreDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		w.recorder = func(inner events.EventRecorder) events.EventRecorder {
			return &full{EventRecorder: inner, until: time.Now().Add(24 * time.Hour), now: time.Now}
		}
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Waits: "ErrImagePull"}
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("the delete's Job is created", time.Minute, func() bool { return len(w.CreatedJobs(contract.Delete)) == 1 })
		w.Advance(20 * time.Second)
		w.rescuedBy("rescued", claim, "/"+contract.PVName(string(claim.UID)), func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: "next"}
		})
		w.CreateClaim("next", func(next *corev1.PersistentVolumeClaim) { next.Spec.VolumeName = "rescued" })
		w.Advance(20 * time.Second)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.Until("its PV has the policy Retain", time.Minute, func() bool {
			pv := w.PVOf(claim)
			return pv == nil || pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
		})
		w.Advance(time.Hour)
		w.mustKeepVolume(claim)
	})
}

// The event about what stays in the storage is emitted once, and nothing is known of it afterwards.
func TestWhatIsLeftIsReportedAlsoWhereEventsAreDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		w.recorder = func(inner events.EventRecorder) events.EventRecorder {
			return &full{EventRecorder: inner, until: time.Now().Add(time.Minute), now: time.Now}
		}
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Always(fakecluster.Halfway(75))}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimRetain)
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold", "verbs", "provision")
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the first run ended", time.Minute, func() bool { return len(w.Runs) == 1 })
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("its record was released", 5*time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
		w.Advance(24 * time.Hour)
		if w.Storage[string(claim.UID)] && len(w.Events.About("", "LeftBehind")) == 0 {
			w.T.Error("the volume stays in the storage, no record is held, and no event says so")
		}
	})
}
