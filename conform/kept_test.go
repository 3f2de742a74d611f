package conform_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/conform"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// An image may make an older volume the claim's. Its data are not this run's to delete, and no promise
// waits for that.
func TestVolumesThatAnImageRetainsAreNotWaitedFor(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.policy = corev1.PersistentVolumeReclaimRetain
		report, err := w.conform()
		if err != nil {
			t.Fatal(err)
		}
		if n := report.Count(conform.NotTested); n < 10 || report.Broken() > 0 || !strings.Contains(report.Promises[0].Note, "reclaim policy Retain") {
			t.Errorf("it says:\n%s", saidOf(report))
		}
		if len(report.Left) != 1 || report.Promises[0].Seconds > 60 {
			t.Errorf("left are %v, after %.0f s", report.Left, report.Promises[0].Seconds)
		}
	})
}

// The dispatcher keeps a volume for which two PersistentVolumes stand, and the script that has written
// them was said to have chosen that.
func TestAVolumeThatABrokenPVKeepsIsNotSaidToBeTheImages(t *testing.T) {
	inWorld(t, "provision-pv", func(w *world) {
		w.interrupt = func(result conform.Result, _ func()) {
			for _, pv := range fakecluster.List[*corev1.PersistentVolume](w) {
				if result.Promise == "provision-pv" {
					fakecluster.Update(w, fakecluster.Admin, pv, func(pv *corev1.PersistentVolume) {
						pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
					})
				}
			}
		}
		report, _ := w.conform(func(r *conform.Run) { r.Only = []string{"provision", "provision-pv", "delete"} })
		last := report.Promises[len(report.Promises)-1]
		if last.Promise != "delete" || last.Verdict != conform.NotTested || last.Note != "it needs provision-pv" {
			t.Errorf("it says:\n%s", saidOf(report))
		}
	})
}
