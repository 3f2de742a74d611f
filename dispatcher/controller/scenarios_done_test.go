package controller_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
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
				w.mustWaitForThePod(claim, contract.Expand, hasEnded)
				w.Until("nothing is kept", 3*time.Minute, func() bool { return len(w.keptPods()) == 0 && len(w.HeldRecords()) == 0 })
			})
		})
	}
}

// A user may delete a claim as soon as it is bound. Its delete is not launched later for what the
// node and the Job controller still report of the provision.
func TestAProvisionWhosePVIsThereIsNotWaitedFor(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		hasEnded := w.linger(fakecluster.Works)
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("it is bound", 10*time.Second, w.IsBound("data"))
		w.Until("its record is released", 10*time.Second, func() bool { return len(w.HeldRecords()) == 0 })
		w.mustWaitForThePod(claim, contract.Provision, hasEnded)
		w.Until("nothing is left", 3*time.Minute, w.Empty)
	})
}

// Without a PV that proves it the word of a container is not enough: a cache may be about to show the
// PV.
func TestAProvisionWithoutItsPVIsWaitedFor(t *testing.T) {
	for name, step := range map[string]func(*fakecluster.Run) fakecluster.Exit{
		"it wrote none":    fakecluster.Halfway(0),
		"it does not fit":  spoils(tooSmall),
		"it is unproven":   spoils(func(pv *corev1.PersistentVolume) { delete(pv.Annotations, contract.AnnClaimUID) }),
		"it names another": spoils(func(pv *corev1.PersistentVolume) { pv.Annotations[contract.AnnProvisionedBy] = "other" }),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				hasEnded := w.linger(fakecluster.Always(step))
				w.Start()
				w.CreateClaim("data")
				w.Until("its container has ended", time.Minute, func() bool { return len(w.RunsOf(contract.Provision)) == 1 })
				w.Advance(lingers / 2)
				if hasEnded() || w.isRecorded() {
					w.T.Errorf("its pod has ended: %t, and its outcome is on record: %t", hasEnded(), w.isRecorded())
				}
				w.Until("its outcome is on record", time.Minute, w.isRecorded)
			})
		})
	}
}

// isRecorded reports whether the outcome of the first run is on record.
func (w *world) isRecorded() bool {
	first := w.CreatedJobs(contract.Provision)[0].Now.GetName()
	return !slices.ContainsFunc(fakecluster.List[*batchv1.Job](w), func(job *batchv1.Job) bool { return job.Name == first && jobs.HeadOf(job).Unrecorded > 0 })
}

// mustWaitForThePod deletes a claim whose last run, of this verb, is done, and whose pod has not ended:
// its delete is launched, and starts when that pod has ended. Then its own pod is not waited for.
func (w *world) mustWaitForThePod(claim *corev1.PersistentVolumeClaim, verb contract.Verb, hasEnded func() bool) {
	w.T.Helper()
	if hasEnded() {
		w.T.Error("the pod had ended before the claim was deleted")
	}
	fakecluster.Delete(w, fakecluster.User, claim)
	w.Until("its delete has a Job", 10*time.Second, func() bool { return len(w.CreatedJobs(contract.Delete)) == 1 })
	w.Until("the volume is deleted", 2*time.Minute, func() bool { return len(w.RunsOf(contract.Delete)) == 1 })
	if last, deletion := w.RunsOf(verb)[0], w.RunsOf(contract.Delete)[0]; deletion.At.Sub(last.At) < lingers {
		w.T.Errorf("the delete ran %s after the %s, whose pod had not ended", deletion.At.Sub(last.At), verb)
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
