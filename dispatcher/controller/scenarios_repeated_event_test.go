package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// The API server deletes events after an hour. An administrator who looks later still finds why a
// volume is kept.
func TestTheEventAboutAVolumeInDoubtIsRepeated(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Script(spoils(tooSmall))}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimRetain)
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold")
		w.Start()
		w.CreateClaim("data")
		for range 3 {
			before := len(w.Events.About("PersistentVolumeClaim/data", "VolumeInDoubt"))
			w.Advance(time.Hour)
			if n := len(w.Events.About("PersistentVolumeClaim/data", "VolumeInDoubt")) - before; n < 4 || n > 12 {
				t.Errorf("it was emitted %d times in an hour, want one every ten minutes or so", n)
			}
		}
	})
}
