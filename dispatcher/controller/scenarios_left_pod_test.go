package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// leavePod deletes the only Job without its pod, as the API server does where a client does not say
// how, and lets the Job controller notice.
func (w *world) leavePod() *batchv1.Job {
	w.T.Helper()
	job := fakecluster.List[*batchv1.Job](w)[0]
	if err := w.Server.Client(fakecluster.Admin).BatchV1().Jobs(job.Namespace).Delete(w.T.Context(), job.Name, metav1.DeleteOptions{}); err != nil {
		w.T.Fatal(err)
	}
	w.Advance(time.Second)
	now := fakecluster.Get[*batchv1.Job](w, job.Namespace, job.Name)
	if pod := fakecluster.List[*corev1.Pod](w)[0]; len(pod.OwnerReferences) > 0 || now == nil || now.Status.Active > 0 {
		w.T.Fatalf("the pod %s was not left: its owners are %v, its Job is %v", pod.Name, pod.OwnerReferences, now)
	}
	return now
}

// The Job of a run at work looks as if it had never had a pod. Its record was once released with
// the claim, and what the container made then was lost.
func TestAbandonedIsUndoneWhenAJobIsDeletedWithoutItsPod(t *testing.T) {
	byDispatcher := []string{"write-pv", "dispatcher", "service-account-name", ""}
	for name, test := range map[string]struct {
		does func(*fakecluster.Run) fakecluster.Exit
		keys []string
	}{
		"the run fails":                {fakecluster.Always(fakecluster.Halfway(75)), nil},
		"the container writes the PV":  {fakecluster.Works, nil},
		"the dispatcher writes the PV": {fakecluster.Always(describes), byDispatcher},
	} {
		for when, leads := range map[string]bool{"no dispatcher leads": false, "a dispatcher leads": true} {
			t.Run(name+", "+when, func(t *testing.T) {
				inWorld(t, func(w *world) {
					w.SetUpGold(nil, test.keys...)
					w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: test.does, Takes: 5 * time.Minute}
					w.Start()
					claim := w.CreateClaim("data")
					w.Until("its pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
					if !leads {
						w.Stop()
					}
					w.leavePod()
					fakecluster.Delete(w, fakecluster.User, claim)
					w.Advance(time.Second)
					if !leads {
						w.Start()
					}
					w.Advance(time.Minute)
					if len(w.RunningPods()) != 1 || len(w.HeldRecords()) != 1 {
						w.T.Fatalf("the container runs in %d pods, and the records %v are held", len(w.RunningPods()), w.HeldRecords())
					}
					w.Until("nothing is left", time.Hour, w.Empty)
					w.MustRun("provision", "delete")
				})
			})
		}
	}
}

// A claim that is still there is served by what the pod has made, or by the next run.
func TestAClaimWhoseJobIsDeletedWithoutItsPodIsServed(t *testing.T) {
	for name, test := range map[string]struct {
		first fakecluster.Exit
		ran   []string
	}{
		"the pod succeeds": {ran: []string{"provision"}},
		"the pod fails":    {first: fakecluster.Exit{Code: 75}, ran: []string{"provision", "provision"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
					if r.Number == 1 && test.first.Code != 0 {
						return test.first
					}
					return fakecluster.Works(r)
				})
				w.Start()
				w.CreateClaim("data")
				w.Until("its pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
				w.Stop()
				w.leavePod()
				w.Start()
				w.Until("the claim is bound", time.Hour, w.IsBound("data"))
				w.Until("its record was released", time.Hour, func() bool { return len(w.HeldRecords()) == 0 })
				w.MustRun(test.ran...)
			})
		})
	}
}

// gatedAndLeft returns a world in which the Job of the claim data was deleted without its pod
// before a dispatcher confirmed it, and one leads again.
func (w *world) gatedAndLeft(then func(job *batchv1.Job)) *corev1.Pod {
	w.T.Helper()
	w.SetUpGold(fakecluster.Works)
	w.NoPodFor["data"] = true
	w.Start()
	w.CreateClaim("data")
	w.Until("its Job is created", time.Minute, func() bool { return len(w.CreatedJobs("")) == 1 })
	w.Stop()
	w.NoPodFor["data"] = false
	w.Advance(time.Second)
	then(w.leavePod())
	w.Start()
	w.Advance(time.Hour)
	return fakecluster.List[*corev1.Pod](w)[0]
}

// Nothing starts or deletes the pod, and the dispatcher may delete none.
func TestAGatedPodThatItsJobHasLeftGoesByTheRemedyOfItsEvent(t *testing.T) {
	for name, then := range map[string]func(w *world, job *batchv1.Job){
		"its Job is a record": func(*world, *batchv1.Job) {},
		"its Job was taken away by hand": func(w *world, job *batchv1.Job) {
			fakecluster.RemoveFinalizer(w, fakecluster.Admin, job, jobs.FinalizerRecord)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				left := w.gatedAndLeft(func(job *batchv1.Job) { then(w, job) })
				w.MustContain("", "RunNotConfirmed", []string{left.Name, "Remedy: kubectl -n flex-provisioner delete pod "})
				if n := len(w.Events.About("PersistentVolumeClaim/data", "RunNotConfirmed")); n < 4 || len(w.Runs) > 0 {
					w.T.Fatalf("it was emitted %d times in an hour, want one every ten minutes or so; ran %v", n, w.Verbs())
				}
				fakecluster.Delete(w, fakecluster.Admin, left)
				w.Until("the claim is bound", time.Hour, w.IsBound("data"))
				w.Until("its record was released", time.Hour, func() bool { return len(w.HeldRecords()) == 0 })
				w.MustRun("provision")
			})
		})
	}
}

// The record stays until the pod, which waits for its gate, is deleted: a leader that pauses may
// have confirmed it.
func TestRecordBeforeStorageStaysAsLongAsAGatedPodThatWasLeft(t *testing.T) {
	inWorld(t, func(w *world) {
		left := w.gatedAndLeft(func(*batchv1.Job) {})
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Advance(time.Hour)
		if len(w.HeldRecords()) != 1 || len(w.Events.About("Job/"+left.Labels[batchv1.JobNameLabel], "RunNotConfirmed")) == 0 {
			w.T.Errorf("the records %v are held, and nothing says why", w.HeldRecords())
		}
		fakecluster.Delete(w, fakecluster.Admin, left)
		w.Until("nothing is left", time.Hour, w.Empty)
		w.MustRun()
	})
}

// Without its Job, and without its claim, nothing but the pod itself is left that an event can be
// about.
func TestAGatedPodThatIsLeftAloneIsReportedUntilItIsDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		left := w.gatedAndLeft(func(job *batchv1.Job) {
			fakecluster.RemoveFinalizer(w, fakecluster.Admin, job, jobs.FinalizerRecord)
			fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		})
		if n := len(w.Events.About("Pod/"+left.Name, "RunNotConfirmed")); n < 4 {
			w.T.Fatalf("it was emitted %d times in an hour, want one every ten minutes or so", n)
		}
		w.MustContain("Pod/"+left.Name, "RunNotConfirmed", []string{left.Labels[batchv1.JobNameLabel], "Remedy: kubectl -n flex-provisioner delete pod " + left.Name})
		fakecluster.Delete(w, fakecluster.Admin, left)
		w.Until("nothing is left", time.Hour, w.Empty)
		w.MustRun()
	})
}
