package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// poke makes the dispatcher look at a claim again.
func (w *world) poke(name string) {
	fakecluster.Update(w, fakecluster.User, w.Claim(name), func(c *corev1.PersistentVolumeClaim) {
		fakecluster.Annotate(c, "example.com/poke.kubernetes.io", time.Now().String())
	})
	synctest.Wait()
}

func TestOneRunPerClaimWhenTheCacheDoesNotShowTheJobYet(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		w.Server.DelayWatches("jobs", true)
		w.CreateClaim("data")
		w.Until("the Job is there", time.Minute, func() bool { return len(w.CreatedJobs("")) == 1 })
		for range 5 {
			w.poke("data")
		}
		if n := len(w.CreatedJobs("")); n != 1 {
			w.T.Errorf("%d Jobs", n)
		}
		w.Server.DelayWatches("jobs", false)
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
	})
}

// The cache shows that the Job has ended, and not yet that its pod has, which has the results.
func TestTheEndOfAPodThatTheCacheDoesNotShowYetIsRecorded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "batch-size", "8", "max-parallel", "1")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 10 * time.Second}
		w.Start()
		for i := range 3 {
			w.CreateClaim(fmt.Sprintf("data-%d", i))
		}
		w.Until("a run of several is at work", time.Minute, func() bool { return len(w.RunningPods()) > 0 })
		w.Server.DelayWatches("pods", true)
		w.Until("all are bound", time.Minute, w.AllBound)
		w.Server.DelayWatches("pods", false)
		w.Until("their records were released", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
		for _, job := range fakecluster.List[*batchv1.Job](w) {
			if text := job.Annotations[jobs.AnnRecord]; strings.Contains(text, "Unlisted") || !strings.Contains(text, `"exitCode":0`) {
				t.Errorf("%s has the record %s", job.Name, text)
			}
		}
	})
}

func TestAPVThatTheCacheDoesNotShowYetIsASuccess(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		w.Server.DelayWatches("persistentvolumes", true)
		w.CreateClaim("data")
		w.Until("the run is told", time.Minute, func() bool { return len(w.Events.About(onData, "")) > 0 })
		w.MustEmit(onData, "ProvisioningSucceeded", 1)
		w.Server.DelayWatches("persistentvolumes", false)
		w.Until("its record was released", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
		w.MustShow(map[string]string{"result": "succeeded"})
	})
}

func TestAbandonedIsUndoneAlthoughTheCacheStillShowsTheClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the first run ended", time.Minute, func() bool { return len(w.Runs) == 1 })
		w.Server.DelayWatches("persistentvolumeclaims", true)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(time.Minute)
		if n := len(w.RunsOf(contract.Provision)); n != 1 {
			w.T.Errorf("%d provisions ran, want 1", n)
		}
		w.Server.DelayWatches("persistentvolumeclaims", false)
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete")
	})
}

// The cache shows a PV as released; meanwhile an administrator has given it to the claim that is
// back.
func TestReclaimByPVLeavesAPVThatWasGivenAwayUnseen(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		w.Server.DelayWatches("persistentvolumeclaims", true)
		w.Server.DelayWatches("persistentvolumes", true)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("the PV is released", time.Minute, func() bool { return w.PVOf(claim).Status.Phase == corev1.VolumeReleased })
		again := w.CreateClaim("again")
		fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = "again", again.UID
		})
		w.Until("the other claim is bound", time.Minute, w.IsBound("again"))
		w.Server.DelayWatches("persistentvolumes", false)
		w.Server.DelayWatches("persistentvolumeclaims", false)
		w.Advance(time.Hour)
		w.MustRun("provision")
	})
}

func TestADispatcherWithNothingToDoAsksForNothing(t *testing.T) {
	for name, prepare := range map[string]func(w *world){
		"a bound claim": func(w *world) { w.SetUpGold(fakecluster.Works); w.Start(); w.provisioned("data") },
		"a claim that waits for its config": func(w *world) {
			w.bare()
			w.Start()
			w.CreateClaim("data")
		},
		"a retained volume": func(w *world) {
			w.SetUpGold(fakecluster.Works)
			w.Start()
			claim := w.provisioned("data")
			w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
			fakecluster.Delete(w, fakecluster.User, claim)
		},
		"a PV deleted while it is bound": func(w *world) {
			w.SetUpGold(fakecluster.Works)
			w.Start()
			fakecluster.Delete(w, fakecluster.Admin, w.PVOf(w.provisioned("data")))
		},
		"a claim that is stalled": func(w *world) {
			w.SetUpGold(fakecluster.Always(fakecluster.Fails(75, "")), "max-attempts", "1")
			w.Start()
			w.CreateClaim("data")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				prepare(w)
				w.Advance(2 * time.Hour)
				before, told := len(w.Dispatcher().Requests()), len(w.Events.About("", ""))
				w.Advance(24 * time.Hour)
				if n := len(w.Dispatcher().Requests()) - before; n > 0 {
					w.T.Errorf("%d requests in a day: %v", n, w.Dispatcher().Requests()[before:])
				}
				most := 0
				if strings.HasPrefix(name, "a claim that ") {
					most = 48 // it says why it waits: Kubernetes keeps an event for an hour
				}
				if n := len(w.Events.About("", "")) - told; n > most || n < most-1 {
					w.T.Errorf("%d events in a day", n)
				}
			})
		})
	}
}

func TestAJobThatTheAPIServerRefusesIsReportedAndRetried(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1")
		w.Server.Refuse(func(_, _ string, obj fakecluster.Object) error {
			if job, ok := obj.(*batchv1.Job); ok {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, job.Name, fmt.Errorf("exceeded quota: few"))
			}
			return nil
		})
		w.Start()
		w.CreateClaim("data")
		w.CreateClaim("other")
		w.Advance(10 * time.Minute)
		w.MustContain(onData, "LaunchFailed", []string{"exceeded quota: few", "provision-"})
		if n := len(w.Events.About(onData, "LaunchFailed")); n < 2 || n > 40 {
			w.T.Errorf("told %d times in 10 minutes", n)
		}
		w.Server.Refuse(nil)
		w.Until("both are bound", 2*time.Minute, w.AllBound)
	})
}
