package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// lingers is how long the pods of these tests take to end after their container: a kubelet needs a
// second.
const lingers = 40 * time.Second

// linger makes the pods of the class gold end late. It returns a function that reports whether the
// last run's pod has ended.
func (w *world) linger(does func(*fakecluster.Run) fakecluster.Exit) (hasEnded func() bool) {
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: does, Lingers: lingers}
	return func() bool { return len(w.RunningPods()) == 0 }
}

// What the node and the Job controller still report of a container that is done changes nothing: a
// delete, an expand and a described PV do not wait for it.
func TestARunThatIsDoneIsNotWaitedFor(t *testing.T) {
	for name, keys := range map[string][]string{"a PV of the container": nil, "a PV of the dispatcher": {"write-pv", "dispatcher", "service-account-name", ""}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpExpandableGold(fakecluster.Works, keys...)
				does := fakecluster.Works
				if keys != nil {
					does = fakecluster.Always(describes)
				}
				hasEnded := w.linger(does)
				w.Start()
				claim := w.CreateClaim("data")
				w.Until("it is bound", 10*time.Second, w.IsBound("data"))
				if hasEnded() {
					w.T.Error("the pod had ended before its claim was bound")
				}
				w.Until("its pod has ended", time.Minute, hasEnded)

				w.requestSize("2Gi")
				w.Until("the claim has its size", 10*time.Second, w.hasSize("2Gi"))
				w.mustWaitForThePod(claim, hasEnded)
				w.Until("nothing is kept", 3*time.Minute, func() bool { return len(w.keptPods()) == 0 && len(w.HeldRecords()) == 0 })
			})
		})
	}
}

// mustWaitForThePod deletes a claim whose expand is done, and whose pod has not ended: its delete is
// launched, and starts when that pod has ended. Then its own pod is not waited for.
func (w *world) mustWaitForThePod(claim *corev1.PersistentVolumeClaim, hasEnded func() bool) {
	w.T.Helper()
	if hasEnded() {
		w.T.Error("the pod had ended before the claim had its size")
	}
	fakecluster.Delete(w, fakecluster.User, claim)
	w.Until("its delete has a Job", 10*time.Second, func() bool { return len(w.CreatedJobs(contract.Delete)) == 1 })
	w.Until("the volume is deleted", 2*time.Minute, func() bool { return len(w.RunsOf(contract.Delete)) == 1 })
	if expand, deletion := w.RunsOf(contract.Expand)[0], w.RunsOf(contract.Delete)[0]; deletion.At.Sub(expand.At) < lingers {
		w.T.Errorf("the delete ran %s after the expand, whose pod had not ended", deletion.At.Sub(expand.At))
	}
	w.Until("the PV is gone", 5*time.Second, func() bool { return len(fakecluster.List[*corev1.PersistentVolume](w)) == 0 })
	if hasEnded() {
		w.T.Error("the pod had ended before the PV was deleted")
	}
}

// A failure waits: only the end of the pod says whether it was evicted, or killed at its deadline.
func TestARunThatFailedIsWaitedFor(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("it is bound", time.Minute, w.IsBound("data"))
		hasEnded := w.linger(fakecluster.Fails(75, "busy"))
		about := "PersistentVolume/" + w.PVOf(claim).Name
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("its container has ended", time.Minute, func() bool { return len(w.RunsOf(contract.Delete)) == 1 })
		w.Advance(lingers / 2)
		if hasEnded() {
			w.T.Fatal("the pod has ended")
		}
		w.MustEmit(about, "VolumeFailedDelete", 0)
		w.Until("its pod has ended", time.Minute, hasEnded)
		w.Advance(5 * time.Second)
		w.MustEmit(about, "VolumeFailedDelete", 1)
	})
}
