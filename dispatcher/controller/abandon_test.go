package controller_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

func TestRule07AClaimDeletedWhileItsJobRunsIsUndone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(halfway(75)))
		w.start()
		claim := w.claim("data")
		w.until("the pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
		drop(w, user, claim)
		w.until("the claim has gone", 500*time.Millisecond, func() bool { return w.now("data") == nil })
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "delete")
		w.mustUndo(w.runs[1], w.runs[0])
		w.mustTell(w.jobName(0), "ProvisioningFailed", 1, "exit code 75")
		w.mustNotSay("next attempt")
		w.until("the Jobs expire", 2*time.Hour, func() bool { return len(every[*batchv1.Job](w)) == 0 })
	})
}

func TestRule07AVolumeThatIsDoneAfterItsClaimHasGoneIsReclaimed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		claim := w.claim("data")
		w.until("the pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
		drop(w, user, claim)
		w.until("the PV is there", time.Minute, func() bool { return w.pvOf(claim) != nil })
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "delete")
		if w.runs[1].request.Undo {
			w.t.Error("with a PV it is no undo")
		}
	})
}

func TestRule01AClaimDeletedDuringTheBackoffIsUndone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(halfway(75)))
		w.start()
		claim := w.claim("data")
		w.until("five runs failed", 10*time.Minute, func() bool { return len(w.runs) == 5 })
		w.run(3 * time.Second)
		drop(w, user, claim)
		w.until("nothing is left", 5*time.Second, w.empty)
		w.mustRun("provision", "provision", "provision", "provision", "provision", "delete")
		w.mustUndo(w.runs[5], w.runs[4])
		if job := w.made(contract.Delete)[0].now.(*batchv1.Job); job.Annotations[jobs.AnnAfter] != "5" {
			w.t.Errorf("the undo is of run %s", job.Annotations[jobs.AnnAfter])
		}
	})
}

// The pod may only be held up: the record keeps the claim's request until its undo has succeeded.
func TestRule01TheRecordStaysUntilItsUndoHasSucceeded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(func(r *run) ending {
			if r.verb == contract.Delete && r.number < 4 {
				return ending{75, "claim: the storage is busy"}
			}
			if r.verb == contract.Provision {
				return halfway(75)(r)
			}
			return works(r)
		})
		w.start()
		claim := w.claim("data")
		w.until("the first run ended", time.Minute, func() bool { return len(w.runs) == 1 })
		drop(w, user, claim)
		w.until("two undos failed", time.Minute, func() bool { return len(w.ran(contract.Delete)) == 2 })
		if !slices.Contains(w.records(), w.made(contract.Provision)[0].name) {
			w.t.Error("the record was let go before the undo succeeded")
		}
		w.until("nothing is left", time.Minute, w.empty)
		want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}
		if got := w.pauses(contract.Delete); !slices.Equal(got, want) {
			w.t.Errorf("pauses %v, want %v", got, want)
		}
		w.mustTell("", "UndoFailed", 3, "busy", "exit code 75")
	})
}

func TestAClaimThatWasNeverServedLeavesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare()
		w.start()
		claim := w.claim("data")
		w.run(time.Minute)
		drop(w, user, claim)
		w.run(time.Minute)
		w.config("gold", "gold")
		w.run(time.Hour)
		if len(w.made("")) != 0 || !w.empty() {
			w.t.Error("something was done for it\n" + w.story())
		}
	})
}

func TestRule07NoUndoWhereNothingCanHaveBeenMade(t *testing.T) {
	for _, code := range []int32{64, 77, 78} {
		inWorld(t, func(w *world) {
			w.goldClass(always(fails(code, "")))
			w.start()
			claim := w.claim("data")
			w.until("two runs failed", 30*time.Minute, func() bool { return len(w.runs) == 2 })
			w.run(time.Second)
			drop(w, user, claim)
			w.until("nothing is left", 5*time.Second, w.empty)
			w.mustRun("provision", "provision")
		})
	}
}

func TestRule07OneRunThatMayHaveMadeSomethingIsEnoughForAnUndo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(script(halfway(75), fails(77, ""), fails(77, ""), fails(77, "")))
		w.start()
		claim := w.claim("data")
		w.until("the credentials were refused", time.Minute, func() bool { return len(w.runs) == 2 })
		w.run(time.Second)
		drop(w, user, claim)
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "provision", "delete")
	})
}

func TestRule07AClaimBoundElsewhereIsUndone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(halfway(75)))
		w.start()
		claim := w.claim("data")
		w.until("the first run ended", time.Minute, func() bool { return len(w.runs) == 1 })
		w.run(500 * time.Millisecond)
		edit(w, admin, claim, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "by-hand" })
		w.until("nothing is left", time.Minute, w.empty)
		if last := w.runs[len(w.runs)-1]; !last.request.Undo {
			w.t.Errorf("ran %v, the last is no undo", w.verbs())
		}
	})
}

// A pod that uses the claim holds it: until it has gone, it may be served no more, and not be undone.
func TestRule07AClaimThatIsLeavingGetsNoJob(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(halfway(75)))
		w.mounted["data"] = true
		w.start()
		claim := w.claim("data")
		w.until("the first run ended", time.Minute, func() bool { return len(w.runs) == 1 })
		drop(w, user, claim)
		n := len(w.made(""))
		w.run(time.Hour)
		if len(w.made("")) != n {
			w.t.Errorf("%d Jobs for a claim that is leaving", len(w.made(""))-n)
		}
		delete(w.mounted, "data")
		w.until("nothing is left", time.Minute, w.empty)
	})
}

func TestAClaimOfTheSameNameIsAnother(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(halfway(75)))
		w.start()
		first := w.claim("data")
		w.until("the first run ended", time.Minute, func() bool { return len(w.runs) == 1 })
		w.images[gold] = image{does: works}
		drop(w, user, first)
		w.until("the claim has gone", time.Minute, func() bool { return w.now("data") == nil })
		second := w.claim("data")
		w.until("the second is bound", time.Minute, w.bound("data"))
		w.until("the first is undone", time.Minute, func() bool { return !w.storage[string(first.UID)] && len(w.records()) == 0 })
		if !w.storage[string(second.UID)] || w.pvOf(second) == nil {
			w.t.Error("the second claim lost its volume")
		}
		w.mustShow(map[string]string{"result": "succeeded", "attempts": "1"})
	})
}

func TestWithoutTheVerbDeleteWhatIsLeftIsSaid(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images[gold] = image{does: always(halfway(75))}
		w.class("gold", corev1.PersistentVolumeReclaimRetain)
		w.account("true")
		w.config("gold", "gold", "verbs", "provision")
		w.start()
		claim := w.claim("data")
		w.until("the first run ended", time.Minute, func() bool { return len(w.runs) == 1 })
		w.run(500 * time.Millisecond)
		drop(w, user, claim)
		w.until("its record is released", time.Minute, func() bool { return len(w.records()) == 0 })
		w.mustTell(w.jobName(0), "LeftBehind", 1, "does not serve the verb delete", "app/data")
	})
}
