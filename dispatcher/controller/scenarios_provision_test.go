package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

func TestAClaimIsBoundByOneJob(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Until("its record was released", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
		if n := len(w.CreatedJobs("")); n != 1 {
			w.T.Errorf("%d Jobs, want 1", n)
		}
		w.MustShow(map[string]string{"result": "succeeded", "attempts": "1", "exit-code": "0", "message": ""})
		if pv := w.PVOf(claim); !slices.Contains(pv.Finalizers, contract.FinalizerStorage) || pv.Annotations[contract.AnnRevision] == "" {
			w.T.Errorf("the PV has the finalizers %v and the annotations %v", pv.Finalizers, pv.Annotations)
		}
		if got, want := w.PVOf(claim).Annotations[contract.AnnProvisionTS], claim.CreationTimestamp.UTC().Format(time.RFC3339); got != want {
			w.T.Errorf("the PV says that its run was launched at %q, not at %s", got, want)
		}
		w.MustEmit("PersistentVolumeClaim/data", "ProvisioningSucceeded", 1, w.PVOf(claim).Name)
		w.Until("the Job expires", 6*time.Minute, func() bool { return len(fakecluster.List[*batchv1.Job](w)) == 0 })
		if len(fakecluster.List[*corev1.Pod](w)) != 0 {
			w.T.Error("its pod is left")
		}
	})
}

func TestOutputThatIsNotForTheUserStaysWithTheJob(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Script(fakecluster.Fails(75, "claim: no such type\n+ curl -u admin:s3cret")))
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		for _, e := range w.Events.About("", "") {
			if strings.Contains(e.Note, "s3cret") && !strings.HasPrefix(e.About, "Job/") {
				w.T.Errorf("told about %s: %s", e.About, e.Note)
			}
		}
		for key, value := range w.Claim("data").Annotations {
			if strings.Contains(value, "s3cret") {
				w.T.Errorf("%s: %s", key, value)
			}
		}
		w.MustEmit(w.jobName(0), "ContainerOutput", 1, "s3cret")
	})
}

// jobName is how events call the Job that was created as number i.
func (w *world) jobName(i int) string { return "Job/" + w.CreatedJobs("")[i].Name }

func TestExitZeroWithoutAPVIsAFailure(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Script(fakecluster.Fails(0, "claim: all is well")))
		w.Start()
		w.CreateClaim("data")
		w.Until("the first run is told", time.Minute, func() bool { return len(w.Events.About("", "ProvisioningFailed")) > 0 })
		w.MustEmit("PersistentVolumeClaim/data", "ProvisioningFailed", 1, "exit code 0, but it did not create the PersistentVolume pvc-", contract.PVFile)
		w.MustNotContain("", "Done (exit code 0)")
		w.Until("it shows", time.Second, func() bool { return w.Claim("data").Annotations[contract.AnnResult] == "failed" })
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		if n := len(w.CreatedJobs("")); n != 2 {
			w.T.Errorf("%d Jobs, want 2", n)
		}
	})
}

// A claim that waits cannot ask for less: its user waited for the next attempt.
func TestARefusedRequestIsToBeCreatedAnew(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Fails(contract.ExitBadRequest, "claim: no ReadWriteMany here"))
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Minute)
		w.MustEmit(onData, "ProvisioningFailed", 1, "no ReadWriteMany here", "next attempt in 10m0s, with the same request. Remedy: delete the claim, and create it anew")
	})
}

func TestAPVAndANonZeroExitIsASuccessWithAWarning(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
			fakecluster.Works(r)
			return fakecluster.Exit{Code: 1, Message: "cannot notify anybody"}
		}))
		w.Start()
		w.CreateClaim("data")
		w.Until("it is recorded", time.Minute, func() bool { return w.IsBound("data")() && len(w.HeldRecords()) == 0 })
		w.Advance(10 * time.Minute)
		if n := len(w.CreatedJobs("")); n != 1 {
			w.T.Errorf("%d Jobs, want 1", n)
		}
		w.MustShow(map[string]string{"result": "succeeded", "exit-code": "1"})
		w.MustEmit("PersistentVolumeClaim/data", "ProvisioningSucceeded", 1, "although", "exit code 1")
	})
}

func TestAPVWithoutTheClaimsUIDIsNoSuccess(t *testing.T) {
	for name, spoil := range map[string]func(*corev1.PersistentVolume){
		"no UID":      func(pv *corev1.PersistentVolume) { delete(pv.Annotations, contract.AnnClaimUID) },
		"another's":   func(pv *corev1.PersistentVolume) { pv.Annotations[contract.AnnClaimUID] = "another" },
		"no claimRef": smallWithoutClaimRef,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
					r.CreateVolume()
					r.WritePV(spoil)
					return fakecluster.Exit{}
				}))
				w.Start()
				w.CreateClaim("data")
				w.Advance(time.Minute)
				w.MustShow(map[string]string{"result": "failed"})
				w.MustEmit("PersistentVolumeClaim/data", "ProvisioningSucceeded", 0)
				if len(w.HeldRecords()) == 0 {
					w.T.Error("the record was let go")
				}
			})
		})
	}
}

func TestARunThatNeverEndsIsEndedByItsTimeout(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "timeout", "2m")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 100 * time.Hour}
		w.Start()
		w.CreateClaim("data")
		w.Until("the second Job", 5*time.Minute, func() bool { return len(w.CreatedJobs("")) == 2 })
		w.MustEmit("PersistentVolumeClaim/data", "ProvisioningFailed", 1, "DeadlineExceeded", "attempt 1")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
	})
}

func TestAPodDeletedByOthersIsNotCounted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-attempts", "1")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: time.Minute}
		w.Start()
		w.CreateClaim("data")
		for range 3 {
			w.Until("a pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
			n := len(w.CreatedJobs(""))
			fakecluster.Delete(w, fakecluster.Admin, w.RunningPods()[0])
			w.Until("the next Job", time.Minute, func() bool { return len(w.CreatedJobs("")) == n+1 })
		}
		w.Until("the claim is bound", 2*time.Minute, w.IsBound("data"))
		w.MustShow(map[string]string{"attempts": "1"})
		if got := w.pauses(contract.Provision); !slices.Equal(got, []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second}) {
			w.T.Errorf("pauses %v, want 10 s", got)
		}
	})
}

func TestOnePodPerJobSoADrainedPodIsFollowedByAnotherJob(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: time.Minute}
		w.Start()
		w.CreateClaim("data")
		w.Until("a pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		fakecluster.Update(w, fakecluster.Admin, w.RunningPods()[0], func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
		})
		fakecluster.Delete(w, fakecluster.Admin, w.RunningPods()[0])
		w.Until("the claim is bound", 3*time.Minute, w.IsBound("data"))
		if n := len(w.CreatedJobs("")); n != 2 {
			w.T.Errorf("%d Jobs, want 2", n)
		}
		w.MustShow(map[string]string{"attempts": "1"})
	})
}

func TestEndedByItsNodeSoADeletedJobIsWaitedForWhileItsPodRuns(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Script(fakecluster.Fails(75, "")), Takes: 5 * time.Minute}
		w.Start()
		w.CreateClaim("data")
		w.Until("a pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.List[*batchv1.Job](w)[0])
		w.Advance(4 * time.Minute)
		if n := len(w.CreatedJobs("")); n != 1 {
			w.T.Fatalf("%d Jobs while the pod of the first runs", n)
		}
		w.Until("the claim is bound", 10*time.Minute, w.IsBound("data"))
		w.Until("the deleted Job goes", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
		if n := len(w.CreatedJobs("")); n != 2 {
			w.T.Errorf("%d Jobs, want 2", n)
		}
	})
}

func TestAJobDeletedByHandMayStillSucceed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		w.CreateClaim("data")
		w.Until("a pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.List[*batchv1.Job](w)[0])
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Until("the deleted Job goes", time.Minute, func() bool { return len(fakecluster.List[*batchv1.Job](w)) == 0 })
		if n := len(w.CreatedJobs("")); n != 1 {
			w.T.Errorf("%d Jobs, want 1", n)
		}
	})
}
