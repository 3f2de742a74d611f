package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// A clone from another namespace that waits for a slot for longer than its namespace's consent is
// kept gets one like any other: it once lost each slot that it was assigned, since the
// consent was to be read again first.
func TestACloneThatWaitsForASlotIsServedAfterThoseBeforeIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.options.Grants = slowGrants(10 * time.Millisecond)
		w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim", "max-parallel", "1")
		w.startWithNodes()
		source := w.CreateClaim("source", inNamespace("host"))
		w.Until("the source is bound", time.Minute, w.AllBound)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 90 * time.Second}
		w.burst("busy", 20)
		w.Advance(10 * time.Second)
		w.CreateClaim("clone", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{"k8s.io/CloneRequest": source.Namespace + "/" + source.Name}
		})
		w.Until("the clone is bound, after two of the others", 10*time.Minute, w.IsBound("clone"))
	})
}
