package controller_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// most is the highest number of Jobs that were unfinished at a time, over the whole log.
func (w *world) most() int {
	live, most := map[string]bool{}, 0
	for _, c := range w.Server.History() {
		if c.Resource != "jobs" {
			continue
		}
		job, exists := c.Now.(*batchv1.Job)
		live[c.Name] = exists && fakecluster.FinishedCondition(job) == nil
		n := 0
		for _, l := range live {
			if l {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func TestMaxParallelIsNeverExceeded(t *testing.T) {
	const claims, parallel = 30, 4
	inWorld(t, func(w *world) {
		w.options.Workers = 10
		w.SetUpGold(fakecluster.Works, "max-parallel", fmt.Sprint(parallel))
		w.Start()
		for i := range claims {
			w.CreateClaim(fmt.Sprintf("data-%d", i))
		}
		w.Until("all are bound", time.Minute, func() bool { return len(w.Storage) == claims && w.AllBound() })
		if got := w.most(); got != parallel {
			w.T.Errorf("%d Jobs at a time, want %d", got, parallel)
		}
		if n := len(w.CreatedJobs("")); n != claims {
			w.T.Errorf("%d Jobs, want %d", n, claims)
		}
		for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
			fakecluster.Delete(w, fakecluster.User, claim)
		}
		w.Until("nothing is left", time.Minute, w.Empty)
		if got := w.most(); got != parallel {
			w.T.Errorf("%d Jobs at a time, want %d", got, parallel)
		}
	})
}

func TestMaxParallelHoldsForUndosToo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.options.Workers = 10
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(65)), "max-parallel", "2")
		w.Start()
		for i := range 10 {
			w.CreateClaim(fmt.Sprintf("data-%d", i))
		}
		w.Until("all failed", time.Minute, func() bool { return len(w.Runs) == 10 })
		w.Advance(time.Second)
		for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
			fakecluster.Delete(w, fakecluster.User, claim)
		}
		w.Until("nothing is left", time.Minute, w.Empty)
		if got := w.most(); got != 2 {
			w.T.Errorf("%d Jobs at a time, want 2", got)
		}
	})
}

func TestOneClassDoesNotHoldUpAnother(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1")
		w.CreateClass("silver", corev1.PersistentVolumeReclaimDelete)
		w.CreateConfig("silver", "silver", "image", newer)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
		w.Images[newer] = fakecluster.Image{Does: fakecluster.Works}
		w.Start()
		w.CreateClaim("slow")
		w.CreateClaim("waits")
		w.CreateClaim("quick", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("silver") })
		w.Until("the other class's claim is bound", 5*time.Second, w.IsBound("quick"))
		if n := len(w.CreatedJobs(contract.Provision)); n != 2 {
			w.T.Errorf("%d Jobs, want one of each class", n)
		}
		w.Until("all are bound", time.Hour, w.AllBound)
	})
}

func TestAJobThatCannotStartFreesItsSlot(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1")
		w.Start()
		w.NoPodFor["data"] = true
		w.CreateClaim("data")
		w.Until("its Job is there", time.Minute, func() bool { return len(w.CreatedJobs("")) == 1 })
		w.CreateClaim("other")
		w.Until("the other is bound", time.Minute, w.IsBound("other"))
		w.NoPodFor["data"] = false
		w.Until("both are bound", time.Minute, w.AllBound)
	})
}

// An administrator takes the finalizers off a Job and deletes it: it goes without having ended.
func TestMaxParallelOfAJobThatVanishesIsFreeAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Takes: 5 * time.Minute, Does: fakecluster.Works}
		w.Start()
		first := w.CreateClaim("first")
		w.Until("the first runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		w.CreateClaim("second")
		w.Advance(2 * time.Second)
		fakecluster.Delete(w, fakecluster.User, first)
		w.Advance(2 * time.Second)
		job := fakecluster.List[*batchv1.Job](w)[0]
		fakecluster.Update(w, fakecluster.Admin, job, func(j *batchv1.Job) { j.Finalizers = nil })
		fakecluster.Delete(w, fakecluster.Admin, job)
		w.Until("the second is bound", 2*time.Hour, w.IsBound("second"))
	})
}
