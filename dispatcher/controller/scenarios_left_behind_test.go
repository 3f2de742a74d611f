package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

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

// Nothing is known of a pod without its Job once its finalizer is removed, either.
func TestWhatAnOrphanLeavesIsReportedAlsoWhereEventsAreDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		drops := &full{now: time.Now}
		w.recorder = func(inner events.EventRecorder) events.EventRecorder {
			drops.EventRecorder = inner
			return drops
		}
		w.runningPod(worksBeforePV)
		claim := w.Claim("data")
		w.Advance(5 * time.Second)
		drops.until = time.Now().Add(90 * time.Second)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Always(fakecluster.Fails(78, ""))}
		fakecluster.Vanish(w, fakecluster.List[*batchv1.Job](w)[0])
		w.Advance(2 * time.Minute)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(5 * time.Hour)
		if w.Storage[string(claim.UID)] && len(w.Events.About("", "LeftBehind")) == 0 {
			t.Error("the volume stays in the storage, and no event says so")
		}
	})
}
