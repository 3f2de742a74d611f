package controller_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// most is the highest number at a time of Jobs that have no pod yet and pods that have not ended, over the whole log.
func (w *world) most() int {
	waiting, pods, most := map[string]bool{}, map[string]bool{}, 0
	for _, c := range w.Server.History() {
		switch obj := c.Now.(type) {
		case *batchv1.Job:
			if c.Verb == "create" {
				waiting[c.Name] = true
			}
			if fakecluster.FinishedCondition(obj) != nil || obj.DeletionTimestamp != nil {
				delete(waiting, c.Name)
			}
		case *corev1.Pod:
			delete(waiting, obj.Labels[batchv1.JobNameLabel])
			if pods[c.Name] = true; obj.Status.Phase == corev1.PodSucceeded || obj.Status.Phase == corev1.PodFailed {
				delete(pods, c.Name)
			}
		case nil:
			delete(waiting, c.Name)
			delete(pods, c.Name)
		}
		most = max(most, len(waiting)+len(pods))
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
		for _, parallel := range []int{1, 5} {
			t.Run(fmt.Sprint(name, " ", parallel), func(t *testing.T) {
				inWorld(t, func(w *world) {
					w.SetUpGold(fakecluster.Works, "max-parallel", fmt.Sprint(parallel))
					image.Does = fakecluster.Works
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

// Of the Jobs that cannot start for one reason, one is kept. It finds out when the others would start. That does not count
// as an attempt of theirs.
func TestOfJobsThatCannotStartOneIsKept(t *testing.T) {
	for why, claims := range map[string]int{"ErrImagePull": 100, "CreateContainerConfigError": 30} {
		t.Run(why, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works, "max-attempts", "1")
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Waits: why}
				w.Start()
				w.burst("app", claims)
				w.Advance(time.Minute)
				jobs := w.unfinished()
				if n := len(w.CreatedJobs("")); len(jobs) != 1 || n != claims {
					w.T.Fatalf("%d Jobs are there of %d, want one of %d", len(jobs), n, claims)
				}
				for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
					if claim.UID != types.UID(jobs[0].Labels[contract.LabelClaimUID]) && !w.saysOf(claim.Name, "its run waits, since the Job "+jobs[0].Name) {
						w.T.Errorf("%s does not say what it waits for", claim.Name)
					}
				}
				w.Advance(5 * time.Minute)
				if n := len(w.CreatedJobs("")); n != claims {
					w.T.Errorf("%d more Jobs were created while the first could not start", n-claims)
				}
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
				w.Until("all are bound", 2*time.Minute, w.AllBound)
				if most := w.most(); most > 20 {
					w.T.Errorf("%d at a time, want 20 at most", most)
				}
				if n := len(w.CreatedJobs("")); n != 2*claims-1 {
					w.T.Errorf("%d Jobs for %d claims, of which all but one had to wait", n, claims)
				}
			})
		})
	}
}

// saysOf reports whether an event about a claim has these words.
func (w *world) saysOf(claim, words string) bool {
	return slices.ContainsFunc(w.Events.About(aboutClaim(claim), ""), func(e fakecluster.Event) bool { return strings.Contains(e.Note, words) })
}

// What keeps one claim's Job from starting may lie in that claim: the others are launched.
func TestAJobThatCannotStartHoldsUpNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "2")
		w.NoPodFor["data"] = true
		w.Start()
		w.CreateClaim("data")
		w.failCreate()
		w.Advance(time.Minute)
		w.burst("app", 10)
		w.Until("the others are bound", time.Minute, func() bool { return len(w.Storage) == 10 })
		w.NoPodFor["data"] = false
		w.Until("all are bound", time.Minute, w.AllBound)
		if most := w.most(); most != 2 {
			w.T.Errorf("%d at a time, want 2", most)
		}
	})
}

// failCreate emits what the Job controller says about each Job for which it can create no pod.
func (w *world) failCreate() {
	fakecluster.Create(w, fakecluster.KubeControllerManager, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "no-pod", Namespace: fakecluster.ConfigNamespace}, Type: corev1.EventTypeWarning,
		Reason: "FailedCreate", Message: "exceeded quota: pods",
	})
}

// What only an event says, such as a quota, counts as well. A new leader has to look at the event again.
func TestOfJobsThatGetNoPodOneIsKept(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "5")
		for i := range 30 {
			w.NoPodFor[fmt.Sprint("app-", i)] = true
		}
		w.Start()
		w.burst("app", 30)
		w.failCreate()
		w.Advance(2 * time.Minute)
		w.Advance(3 * time.Minute)
		created := len(w.CreatedJobs(""))
		if n := len(w.unfinished()); n != 1 || created != 30 {
			w.T.Errorf("%d Jobs of %d are there, want one of 30", n, created)
		}
		w.Stop()
		w.Start()
		w.Advance(2 * time.Minute)
		if n := len(w.unfinished()); n != 1 || len(w.CreatedJobs("")) > created+5 {
			w.T.Errorf("after a restart %d Jobs are there, and %d were created", n, len(w.CreatedJobs(""))-created)
		}
		clear(w.NoPodFor)
		w.Until("all are bound", 5*time.Minute, w.AllBound)
		if most := w.most(); most > 5 {
			w.T.Errorf("%d at a time, want 5 at most", most)
		}
	})
}

// A probe ends at its deadline, and another claim's Job is the next. Not all that wait are launched for that.
func TestAProbeThatEndsIsFollowedByOne(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "timeout", "2m")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Waits: "ErrImagePull"}
		w.Start()
		w.burst("app", 50)
		w.Advance(time.Minute)
		created := len(w.CreatedJobs(""))
		w.Advance(20 * time.Minute)
		if n := len(w.CreatedJobs("")) - created; n < 5 || n > 30 {
			w.T.Errorf("%d Jobs in 20 minutes, each of which ends after two", n)
		}
		if n := len(w.unfinished()); n > 2 {
			w.T.Errorf("%d Jobs at a time", n)
		}
	})
}

// Jobs that cannot start on several nodes leave a slot to those that can.
func TestJobsThatCannotStartLeaveASlot(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(fakecluster.Works, []string{"node-1"}, "max-parallel", "3", "run-on", "selected-node")
		w.Cordoned = "bad-"
		for i := range 5 {
			w.CreateNode(fmt.Sprint("bad-", i))
		}
		w.Start()
		for i := range 20 {
			w.CreateClaim(fmt.Sprint("bad-", i), fakecluster.SelectNode(fmt.Sprint("bad-", i%5)))
		}
		w.Until("all but those of the Jobs that are kept are bound", 5*time.Minute, func() bool { return len(w.Storage) == 18 })
		w.Advance(time.Minute)
		if n := len(w.unfinished()); n != 2 {
			w.T.Errorf("%d Jobs that cannot start are kept, want 2", n)
		}
		w.Cordoned = ""
		w.Until("all are bound", time.Minute, w.AllBound)
		if most := w.most(); most != 3 {
			w.T.Errorf("%d at a time, want 3", most)
		}
	})
}

// Deleting the claim of the probe, or correcting its config, lets the others go on.
func TestAProbeThatIsCancelledHoldsUpNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Waits: "ErrImagePull"}
		w.Images[newer] = fakecluster.Image{Does: fakecluster.Works}
		w.Start()
		first := w.CreateClaim("first")
		w.Until("it has a Job", time.Minute, func() bool { return len(w.CreatedJobs("")) == 1 })
		w.burst("app", 5)
		w.Advance(time.Minute)
		fakecluster.Delete(w, fakecluster.User, first)
		w.Until("the next is the probe", time.Minute, func() bool { return len(w.CreatedJobs("")) == 2 && len(w.unfinished()) == 1 })
		w.UpdateConfig("image", newer)
		w.Until("all are bound", time.Minute, w.AllBound)
	})
}

// The API server refuses the Job of a batch, and the first claim of it is launched alone, with the same slot.
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

// A pod was deleted by force, and its node is silent: its container may be at work until its deadline.
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
