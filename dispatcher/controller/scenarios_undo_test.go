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

func TestAbandonedIsUndoneWhenAClaimIsDeletedDuringItsRun(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("the claim has gone", 500*time.Millisecond, func() bool { return w.Claim("data") == nil })
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete")
		w.MustUndo(w.Runs[1], w.Runs[0])
		w.MustEmit(w.jobName(0), "ProvisioningFailed", 1, "exit code 75")
		w.MustNotContain("", "next attempt")
		w.Until("the Jobs expire", 2*time.Hour, func() bool { return len(fakecluster.List[*batchv1.Job](w)) == 0 })
	})
}

func TestReclaimByPVOfAVolumeThatIsReadyAfterItsClaimWasDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("the PV is there", time.Minute, func() bool { return w.PVOf(claim) != nil })
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete")
		if w.Runs[1].Request.Undo {
			w.T.Error("with a PV it is no undo")
		}
	})
}

func TestAbandonedIsUndoneWhenAClaimIsDeletedDuringTheBackoff(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("five runs failed", 10*time.Minute, func() bool { return len(w.Runs) == 5 })
		w.Advance(3 * time.Second)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", 5*time.Second, w.Empty)
		w.MustRun("provision", "provision", "provision", "provision", "provision", "delete")
		w.MustUndo(w.Runs[5], w.Runs[4])
		if record := recordOf(w.CreatedJobs(contract.Delete)[0]); record.After != 5 {
			w.T.Errorf("the undo is of run %d", record.After)
		}
	})
}

// The pod may only be held up: the record keeps the claim's request until its undo has succeeded.
func TestRecordBeforeStorageStaysUntilItsUndoHasSucceeded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Verb == contract.Delete && r.Number < 4 {
				return fakecluster.Exit{Code: 75, Message: "claim: the storage is busy"}
			}
			if r.Verb == contract.Provision {
				return fakecluster.Halfway(75)(r)
			}
			return fakecluster.Works(r)
		})
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the first run ended", time.Minute, func() bool { return len(w.Runs) == 1 })
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("two undos failed", time.Minute, func() bool { return len(w.RunsOf(contract.Delete)) == 2 })
		if !slices.Contains(w.HeldRecords(), w.CreatedJobs(contract.Provision)[0].Name) {
			w.T.Error("the record was let go before the undo succeeded")
		}
		w.Until("nothing is left", time.Minute, w.Empty)
		want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}
		if got := w.pauses(contract.Delete); !slices.Equal(got, want) {
			w.T.Errorf("pauses %v, want %v", got, want)
		}
		w.MustEmit("", "UndoFailed", 3, "busy", "exit code 75")
	})
}

func TestAClaimThatWasNeverLaunchedLeavesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare()
		w.Start()
		claim := w.CreateClaim("data")
		w.Advance(time.Minute)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(time.Minute)
		w.CreateConfig("gold", "gold")
		w.Advance(time.Hour)
		if len(w.CreatedJobs("")) != 0 || !w.Empty() {
			w.T.Error("something was done for it\n" + w.Story())
		}
	})
}

func TestAbandonedIsNotUndoneWhereNothingCanHaveBeenMade(t *testing.T) {
	for _, code := range []int32{64, 77, 78} {
		inWorld(t, func(w *world) {
			w.SetUpGold(fakecluster.Always(fakecluster.Fails(code, "")))
			w.Start()
			claim := w.CreateClaim("data")
			w.Until("two runs failed", 30*time.Minute, func() bool { return len(w.Runs) == 2 })
			w.Advance(time.Second)
			fakecluster.Delete(w, fakecluster.User, claim)
			w.Until("nothing is left", 5*time.Second, w.Empty)
			w.MustRun("provision", "provision")
		})
	}
}

func TestAbandonedIsUndoneIfAnyRunMayHaveMadeSomething(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Script(fakecluster.Halfway(75), fakecluster.Fails(77, ""), fakecluster.Fails(77, ""), fakecluster.Fails(77, "")))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the credentials were refused", time.Minute, func() bool { return len(w.Runs) == 2 })
		w.Advance(time.Second)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "provision", "delete")
	})
}

// An administrator has given up what the first run made, perhaps since another PV uses it. A run that
// never started was undone after its claim, and so was that volume.
func TestWhatIsGivenUpIsNotUndoneAfterARunThatNeverStarted(t *testing.T) {
	for _, expires := range []bool{false, true} {
		t.Run(map[bool]string{false: "at once", true: "when its record has expired"}[expires], func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)), "timeout", "1m")
				w.Start()
				claim := w.CreateClaim("data")
				w.Until("the first run ended", time.Minute, func() bool { return len(w.Runs) == 1 })
				image := w.Images[fakecluster.GoldImage]
				image.Waits = "ErrImagePull"
				w.Images[fakecluster.GoldImage] = image
				w.Advance(500 * time.Millisecond)
				first := fakecluster.List[*batchv1.Job](w)[0]
				fakecluster.Update(w, fakecluster.Admin, first, func(job *batchv1.Job) { job.Annotations[jobs.AnnForget] = string(claim.UID) })
				w.Until("two more were launched", time.Hour, func() bool { return len(w.CreatedJobs(contract.Provision)) == 3 })
				if expires {
					w.Until("it has expired", 4*time.Hour, func() bool {
						return !slices.ContainsFunc(fakecluster.List[*batchv1.Job](w), func(job *batchv1.Job) bool { return job.UID == first.UID })
					})
				}
				image.Waits = ""
				w.Images[fakecluster.GoldImage] = image
				fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
				w.Advance(2 * time.Hour)
				w.MustRun("provision")
				w.MustEmit("Job/"+first.Name, "LeftBehind", 1, "an administrator has released its record")
				if len(w.Storage) == 0 || len(w.HeldRecords()) > 0 {
					w.T.Errorf("the storage has %v, and on record are %v", w.Storage, w.HeldRecords())
				}
			})
		})
	}
}

func TestAbandonedIsUndoneWhenAClaimIsBoundElsewhere(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the first run ended", time.Minute, func() bool { return len(w.Runs) == 1 })
		w.Advance(500 * time.Millisecond)
		fakecluster.Update(w, fakecluster.Admin, claim, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "by-hand" })
		w.Until("nothing is left", time.Minute, w.Empty)
		if last := w.Runs[len(w.Runs)-1]; !last.Request.Undo {
			w.T.Errorf("ran %v, the last is no undo", w.Verbs())
		}
	})
}

// A pod that uses the claim holds it: until it has ended, the claim gets no Job any more, and not
// be undone.
func TestAbandonedIsUndoneAndATerminatingClaimGetsNoJob(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		w.Mounted["data"] = true
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the first run ended", time.Minute, func() bool { return len(w.Runs) == 1 })
		fakecluster.Delete(w, fakecluster.User, claim)
		n := len(w.CreatedJobs(""))
		w.Advance(time.Hour)
		if len(w.CreatedJobs("")) != n {
			w.T.Errorf("%d Jobs for a claim that is leaving", len(w.CreatedJobs(""))-n)
		}
		delete(w.Mounted, "data")
		w.Until("nothing is left", time.Minute, w.Empty)
	})
}

func TestAClaimOfTheSameNameIsAnother(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		w.Start()
		first := w.CreateClaim("data")
		w.Until("the first run ended", time.Minute, func() bool { return len(w.Runs) == 1 })
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		fakecluster.Delete(w, fakecluster.User, first)
		w.Until("the claim has gone", time.Minute, func() bool { return w.Claim("data") == nil })
		second := w.CreateClaim("data")
		w.Until("the second is bound", time.Minute, w.IsBound("data"))
		w.Until("the first is undone", time.Minute, func() bool { return !w.Storage[string(first.UID)] && len(w.HeldRecords()) == 0 })
		if !w.Storage[string(second.UID)] || w.PVOf(second) == nil {
			w.T.Error("the second claim lost its volume")
		}
		w.MustShow(map[string]string{"result": "succeeded", "attempts": "1"})
	})
}

func TestWithoutTheVerbDeleteWhatIsLeftIsSaid(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Always(fakecluster.Halfway(75))}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimRetain)
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold", "verbs", "provision")
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the first run ended", time.Minute, func() bool { return len(w.Runs) == 1 })
		w.Advance(500 * time.Millisecond)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("its record is released", time.Minute, func() bool { return len(w.HeldRecords()) == 0 })
		w.MustEmit(w.jobName(0), "LeftBehind", 1, "does not support the verb delete", "app/data")
	})
}

// A claim is tried under three configs, perhaps of three storages, and the image deletes nothing. What
// each of the first two runs has left is said, although the reason is the same.
func TestWithoutTheVerbDeleteWhatIsLeftIsSaidOfEachConfig(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Always(fakecluster.Halfway(75))}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimRetain)
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold", "verbs", "provision", "backend", "first")
		w.Start()
		w.CreateClaim("data")
		for i, backend := range []string{"second", "third"} {
			w.Until("another run ended", 5*time.Minute, func() bool { return len(w.Runs) == i+1 })
			w.UpdateConfig("backend", backend)
			w.Until("the next run ended", 5*time.Minute, func() bool { return len(w.Runs) == i+2 })
			w.MustEmit(w.jobName(i), "LeftBehind", 1, "does not support the verb delete", "app/data")
		}
	})
}
