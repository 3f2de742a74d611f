package controller_test

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// The claim whose PV another client has written is enqueued by the watch, but it is the first claim
// of the batch that confirms it. The batch once kept the class's only slot until its Job's own
// deadline. The conflicts last longer than the events of a new pod, each of which has the batch
// judged again.
func TestABatchOfDeletesIsConfirmedAfterAConflict(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "4")
		w.Start()
		x, a, b := w.provisioned("x"), w.provisioned("a"), w.provisioned("b")
		w.Advance(time.Hour)
		fakecluster.Delete(w, fakecluster.Admin, w.PVOf(a)) // they are held by our finalizer
		fakecluster.Delete(w, fakecluster.Admin, w.PVOf(b))
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 10 * time.Second}
		w.NoPodFor["a"], w.NoPodFor["b"] = true, true
		fakecluster.Delete(w, fakecluster.User, x)
		w.Until("the first delete runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		fakecluster.Delete(w, fakecluster.User, a)
		fakecluster.Delete(w, fakecluster.User, b)
		w.Until("the batch is there", time.Minute, func() bool { return len(w.CreatedJobs(contract.Delete)) == 2 })
		w.Advance(time.Minute) // its pod comes late, for a quota
		tried, begun := 0, time.Now()
		w.Server.Overtake(func(verb string, at fakecluster.Key, _ []byte) func(fakecluster.Object) {
			if time.Since(begun) > 2*time.Second || verb != "delete" || at.Resource != "persistentvolumes" || at.Name != contract.PVName(string(b.UID)) {
				return nil
			}
			tried++
			return func(pv fakecluster.Object) {
				fakecluster.Annotate(pv.(*corev1.PersistentVolume), "example.com/note", strconv.Itoa(tried))
			}
		})
		w.NoPodFor["a"], w.NoPodFor["b"] = false, false
		w.Until("the volumes are deleted", 24*time.Hour, func() bool { return len(w.Storage) == 0 })
		if took := time.Since(begun); tried < 2 || took > time.Minute {
			w.T.Errorf("the deletes took %s, after %d conflicts", took, tried)
		}
	})
}

// A kubelet may write annotations of its pods. One that wrote that its pod served other claims held
// their runs up for as long as it liked.
func TestAPodDoesNotSayOfItselfWhichClaimsItServes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(nil)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
		w.Start()
		w.CreateClaim("held")
		w.Until("its pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		victim := w.CreateClaim("victim")
		fakecluster.Update(w, fakecluster.Kubelet, fakecluster.List[*corev1.Pod](w)[0], func(pod *corev1.Pod) {
			fakecluster.Annotate(pod, jobs.AnnUIDs, string(victim.UID))
		})
		w.Until("the pod of the other claim runs beside it", time.Minute, func() bool { return len(w.RunningPods()) == 2 })
		w.Until("all are bound", 10*time.Minute, w.AllBound)
	})
}
