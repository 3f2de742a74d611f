package controller_test

import (
	"math"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// processorTime returns the processor time that this process has used: the clock of a world is no
// measure of that.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Kubernetes accepts each of these sizes of a claim. One with a long exponent took the dispatcher 20 s
// of a processor, and with some others it asked an image for 0 bytes, or for fewer than none.
func TestASizeThatIsTooLargeIsTheLargestThatThereIs(t *testing.T) {
	for _, size := range []string{"10E", "9223372036854775808", "18446744073709552640", "1e1000000"} {
		t.Run(size, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpExpandableGold(fakecluster.Works)
				w.Start()
				w.provisioned("data")
				before := processorTime(t)
				w.requestSize(size)
				w.Advance(10 * time.Minute)
				w.MustRun("provision", "expand")
				if got := w.Runs[1].Request.Size; got != math.MaxInt64 {
					w.T.Errorf("the image is asked for %d bytes", got)
				}
				if took := processorTime(t) - before; took > 5*time.Second {
					w.T.Errorf("it took %s of a processor", took)
				}
			})
		})
	}
}

// A pod with the token of its run wrote a size that takes minutes to parse, and stopped one worker.
func TestASizeOfAFileSystemIsReadAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(making(func(pv *corev1.PersistentVolume) {
			asISCSI(pv)
			pv.Annotations[contract.AnnFileSystem] = "1e-9999999"
		}))
		w.Start()
		w.provisioned("data")
		before := processorTime(t)
		w.requestSize("2Gi")
		w.Until("an event asks for the file system to be expanded", 10*time.Minute, func() bool {
			return len(w.Events.About(onData, "FileSystemResizeRequired")) > 0
		})
		if took := processorTime(t) - before; took > 5*time.Second {
			w.T.Errorf("it took %s of a processor", took)
		}
	})
}
