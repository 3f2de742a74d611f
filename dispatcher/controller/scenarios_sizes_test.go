package controller_test

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// Kubernetes accepts each of these sizes of a claim. With some of them the dispatcher asked an image
// for 0 bytes, or for fewer than none.
func TestASizeThatIsTooLargeIsTheLargestThatThereIs(t *testing.T) {
	for _, size := range []string{"10E", "9223372036854775808", "18446744073709552640", "1e50"} {
		t.Run(size, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpExpandableGold(fakecluster.Works)
				w.Start()
				w.provisioned("data")
				w.requestSize(size)
				w.Advance(10 * time.Minute)
				w.MustRun("provision", "expand")
				if got := w.Runs[1].Request.Size; got != math.MaxInt64 {
					w.T.Errorf("the image is asked for %d bytes", got)
				}
			})
		})
	}
}

// A pod with the token of its run once wrote a size that took minutes to parse, and stopped one
// worker.
func TestASizeOfAFileSystemWithALongExponentIsNone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(making(func(pv *corev1.PersistentVolume) {
			asISCSI(pv)
			pv.Annotations[contract.AnnFileSystem] = "1e100"
		}))
		w.Start()
		w.provisioned("data")
		w.requestSize("2Gi")
		w.Until("an event asks for the file system to be expanded", 10*time.Minute, func() bool {
			return len(w.Events.About(onData, "FileSystemResizeRequired")) > 0
		})
	})
}
