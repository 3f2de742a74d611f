package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// A pod writes any file system to a raw device. No kubelet mounts it by way of a clone.
func TestACloneHasTheVolumeModeOfItsSource(t *testing.T) {
	for _, modes := range [][2]corev1.PersistentVolumeMode{
		{corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem}, {corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock},
	} {
		inWorld(t, func(w *world) {
			w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
			w.Start()
			w.CreateClaim("other", inMode(modes[0]))
			w.Until("the source is bound", time.Minute, w.IsBound("other"))
			made := len(w.CreatedJobs(""))
			w.CreateClaim("data", copyOf("other"), inMode(modes[1]))
			w.Advance(time.Hour)
			if len(w.CreatedJobs("")) != made {
				w.T.Error("a Job was launched\n" + w.Story())
			}
			w.MustEmitSome(onData, "SourceModeDiffers", "app/other has the volumeMode "+string(modes[0]))
			w.CreateClaim("same", copyOf("other"), inMode(modes[0]))
			w.Until("a copy of the same mode is bound", time.Minute, w.IsBound("same"))
		})
	}
}

func inMode(mode corev1.PersistentVolumeMode) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = &mode }
}
