package controller_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// most is the highest number at a time of Jobs that have no pod yet and pods that have not ended,
// over the whole log.
func (w *world) most() int { return w.mostOf(func(metav1.Object) int { return 1 }) }

// mostOf is most, with what each Job or pod counts for.
func (w *world) mostOf(counts func(metav1.Object) int) int {
	waiting, pods, most := map[string]int{}, map[string]int{}, 0
	for _, c := range w.Server.History() {
		switch obj := c.Now.(type) {
		case *batchv1.Job:
			if c.Verb == "create" {
				waiting[c.Name] = counts(obj)
			}
			if fakecluster.FinishedCondition(obj) != nil || obj.DeletionTimestamp != nil {
				delete(waiting, c.Name)
			}
		case *corev1.Pod:
			delete(waiting, obj.Labels[batchv1.JobNameLabel])
			isCancelled := obj.DeletionTimestamp != nil && obj.Spec.NodeName == "" // no node will ever start it
			if pods[c.Name] = counts(obj); isCancelled || obj.Status.Phase == corev1.PodSucceeded || obj.Status.Phase == corev1.PodFailed {
				delete(pods, c.Name)
			}
		case nil:
			delete(waiting, c.Name)
			delete(pods, c.Name)
		}
		now := 0
		for _, all := range []map[string]int{waiting, pods} {
			for _, n := range all {
				now += n
			}
		}
		most = max(most, now)
	}
	return most
}

// mostAtWork is the highest number of pods at a time of which a container was at work.
func (w *world) mostAtWork() int {
	at, most := map[string]bool{}, 0
	for _, c := range w.Server.History() {
		if c.Resource != "pods" {
			continue
		}
		delete(at, c.Name)
		if pod, exists := c.Now.(*corev1.Pod); exists && (pod.Status.Phase == corev1.PodRunning || fakecluster.IsInitialising(pod)) {
			at[c.Name] = true
		}
		most = max(most, len(at))
	}
	return most
}

// unfinished returns the Jobs that have neither finished nor been deleted.
func (w *world) unfinished() []*batchv1.Job {
	return slices.DeleteFunc(fakecluster.List[*batchv1.Job](w), func(job *batchv1.Job) bool {
		return fakecluster.FinishedCondition(job) != nil || job.DeletionTimestamp != nil
	})
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

// Whatever makes pods slow: no more of them are at work than max-parallel says.
func TestMaxParallelCountsContainersAtWork(t *testing.T) {
	for name, image := range map[string]fakecluster.Image{
		"that start late":                  {StartsAfter: time.Minute},
		"after an init container":          {InitTakes: 2 * time.Minute, Takes: 10 * time.Second},
		"that work on after their PV":      {Takes: 3 * time.Minute},
		"that were deleted, and end later": {Takes: time.Minute, EndsAfter: 5 * time.Minute},
	} {
		image.Does = fakecluster.Works
		for _, parallel := range []int{1, 5} {
			t.Run(fmt.Sprint(name, " ", parallel), func(t *testing.T) {
				inWorld(t, func(w *world) {
					w.SetUpGold(fakecluster.Works, "max-parallel", fmt.Sprint(parallel))
					w.Images[fakecluster.GoldImage] = image
					w.Start()
					w.burst("app", 3*parallel)
					w.Advance(90 * time.Second)
					for _, pod := range fakecluster.List[*corev1.Pod](w) {
						if image.EndsAfter > 0 {
							fakecluster.Delete(w, fakecluster.Admin, pod)
						}
					}
					w.Until("all are bound", time.Hour, w.AllBound)
					if most, atWork := w.most(), w.mostAtWork(); most != parallel || atWork != parallel {
						w.T.Errorf("%d Jobs at a time and %d containers at work, want %d", most, atWork, parallel)
					}
				})
			})
		}
	}
}

// The node says that the container has ended, and clears away the pod's network for a while. Only
// then the pod, and after it the Job, has ended.
func TestASlotIsFreeAsSoonAsTheContainersHaveEnded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Script(fakecluster.Fails(75, "")), "max-parallel", "1")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: w.Images[fakecluster.GoldImage].Does, Lingers: 20 * time.Second}
		w.Start()
		first := w.CreateClaim("first")
		w.Until("the first runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		w.CreateClaim("second")
		w.Until("its container has ended", time.Minute, func() bool { return len(w.Runs) == 1 })
		ended := time.Now()
		w.Until("the second is launched", time.Minute, func() bool { return len(w.CreatedJobs("")) == 2 })
		if waited := time.Since(ended); waited > time.Second {
			w.T.Errorf("the slot was free %s after the end of the container", waited)
		}
		if uids := jobs.UIDs(w.CreatedJobs("")[1].Now.(*batchv1.Job)); slices.Contains(uids, string(first.UID)) {
			w.T.Error("the first claim was launched again before its pod had ended")
		}
		w.Until("all are bound", time.Hour, w.AllBound)
		if atWork := w.mostContainers(); atWork != 1 {
			w.T.Errorf("%d containers at work, want 1", atWork)
		}
	})
}

// mostContainers is the highest number of containers at a time that had not ended, of pods that
// run.
func (w *world) mostContainers() int {
	at, most := map[string]bool{}, 0
	for _, c := range w.Server.History() {
		if pod, exists := c.Now.(*corev1.Pod); exists {
			if at[c.Name] = pod.Status.Phase == corev1.PodRunning && !runs.HasContainerEnded(pod); !at[c.Name] {
				delete(at, c.Name)
			}
		}
		most = max(most, len(at))
	}
	return most
}

// With one slot, a Job that cannot start keeps it: it may start at any moment, and 1 means one.
func TestMaxParallelOfOneMeansOne(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Waits: "CreateContainerConfigError"}
		w.Start()
		w.burst("app", 10)
		w.Advance(5 * time.Minute)
		if n := len(w.CreatedJobs("")); n != 1 {
			w.T.Errorf("%d Jobs while the first cannot start", n)
		}
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.Until("all are bound", time.Hour, w.AllBound)
		if most := w.most(); most != 1 {
			w.T.Errorf("%d at a time", most)
		}
	})
}

// The API server refuses the Job of a batch, and the first claim of it is launched alone, with the
// same slot.
func TestMaxParallelHoldsWhenABatchIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		w.options.Workers = 10
		w.SetUpGold(fakecluster.Works, "max-parallel", "2", "batch-size", "4")
		w.Server.Refuse(func(_, _ string, obj fakecluster.Object) error {
			if job, ok := obj.(*batchv1.Job); ok && len(jobs.UIDs(job)) > 1 {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, job.Name, errors.New("too large"))
			}
			return nil
		})
		w.Start()
		w.burst("app", 40)
		w.Until("all are bound", time.Hour, w.AllBound)
		if most := w.most(); most != 2 {
			w.T.Errorf("%d at a time, want 2", most)
		}
	})
}

// The API server does not answer, and the Job exists.
func TestMaxParallelHoldsWhenTheAnswerIsLost(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1")
		w.options.Workers = 10
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 10 * time.Second}
		w.Server.LoseAnswer(func(obj fakecluster.Object) bool {
			_, is := obj.(*batchv1.Job)
			return is
		})
		w.Start()
		w.burst("app", 10)
		w.Until("all are bound", time.Hour, w.AllBound)
		if most := w.most(); most != 1 {
			w.T.Errorf("%d at a time, want 1", most)
		}
	})
}

// A pod was deleted by force, and its node is silent: its container may be at work until its
// deadline.
func TestMaxParallelWaitsForAPodThatWasDeletedByForce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "timeout", "10m")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
		w.Start()
		w.CreateClaim("data")
		w.Until("it runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		begun := time.Now()
		w.NodeLost = true
		w.force(w.RunningPods()[0])
		w.CreateClaim("other")
		w.Until("the other is launched", time.Hour, func() bool { return len(w.CreatedJobs("")) == 2 })
		if waited := time.Since(begun); waited < 10*time.Minute {
			w.T.Errorf("it was launched after %s, and the pod may run for ten minutes", waited)
		}
	})
}

// The clock of the node is slow, so the pod seems to have started before it had a node. That was once
// believed in the simulation, where a pod got its node minutes after its Job was created: its slot
// was free while its container was at work.
func TestMaxParallelWaitsForAForcedPodOfANodeWhoseClockIsSlow(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "timeout", "10m")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 5 * time.Minute}
		w.Frozen["node-1"], w.Clocks["node-1"] = true, -9*time.Minute
		w.Start()
		w.CreateClaim("data")
		w.Advance(4 * time.Minute)
		delete(w.Frozen, "node-1")
		w.Until("it runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		begun := time.Now()
		w.NodeLost = true
		w.force(w.RunningPods()[0])
		w.CreateClaim("other")
		w.Until("the other is launched", time.Hour, func() bool { return len(w.CreatedJobs("")) == 2 })
		if waited := time.Since(begun); waited < 10*time.Minute {
			w.T.Errorf("it was launched after %s, and the pod may run for ten minutes", waited)
		}
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
