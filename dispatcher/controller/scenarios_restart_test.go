package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// life is a story from an empty world to an empty world. It returns what must be the same however
// often the dispatcher dies.
type life func(w *world, last int64) string

var stories = map[string]life{
	"born and deleted": bornAndDeleted, "failed and abandoned": failedAndAbandoned, "moved on": movedOn, "grown": grown,
	"replaced": replaced, "rescheduled": rescheduled, "described": described, "deleted at once": deletedAtOnce,
}

// bornAndDeleted: a claim is bound, lives on, and is deleted.
func bornAndDeleted(w *world, last int64) string {
	w.SetUpGold(fakecluster.Works)
	w.StartMortal(last)
	claim := w.CreateClaim("data")
	w.Until("the claim is bound", 3*time.Hour, w.IsBound("data"))
	w.Until("its record was released", 3*time.Hour, func() bool { return len(w.HeldRecords()) == 0 })
	if !w.Storage[string(claim.UID)] || !w.heldByUs(claim) {
		w.T.Error("the volume is not there, or not held")
	}
	w.Until("its result is shown", 3*time.Hour, func() bool { return w.Claim("data").Annotations[contract.AnnResult] != "" })
	w.MustShow(map[string]string{"result": "succeeded", "attempts": "1"})
	fakecluster.Delete(w, fakecluster.User, claim)
	w.Until("nothing is left", 3*time.Hour, w.Empty)
	return w.sum()
}

// deletedAtOnce: a claim is deleted as soon as it is bound, when the pod of its provision has not
// ended.
func deletedAtOnce(w *world, last int64) string {
	w.SetUpGold(fakecluster.Works)
	w.linger(fakecluster.Works)
	w.StartMortal(last)
	claim := w.CreateClaim("data")
	w.Until("the claim is bound", 3*time.Hour, w.IsBound("data"))
	fakecluster.Delete(w, fakecluster.User, claim)
	w.Until("nothing is left", 3*time.Hour, w.Empty)
	return w.sum()
}

// failedAndAbandoned: two runs fail halfway, the claim goes, the undo fails once. The user moves
// while the image runs: whoever is dead then, it is the same story.
func failedAndAbandoned(w *world, last int64) string {
	w.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
		switch {
		case r.Verb == contract.Provision:
			if r.Number == 2 {
				fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
			}
			return fakecluster.Halfway(75)(r)
		case r.Number == 1:
			return fakecluster.Exit{Code: 75}
		default:
			return fakecluster.Works(r)
		}
	})
	w.StartMortal(last)
	w.CreateClaim("data")
	w.Until("it was undone", 9*time.Hour, func() bool { return len(w.Runs) == 4 })
	w.Until("nothing is left", 9*time.Hour, w.Empty)
	return w.sum()
}

// movedOn: the config changes during a run that fails, so that it is undone and another follows;
// later the PV's policy is switched to and fro.
func movedOn(w *world, last int64) string {
	w.SetUpGold(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
		w.UpdateConfig("image", newer)
		return fakecluster.Halfway(65)(r)
	}))
	w.Images[newer] = fakecluster.Image{Does: fakecluster.Works}
	w.StartMortal(last)
	claim := w.CreateClaim("data")
	w.Until("the claim is bound", 9*time.Hour, w.IsBound("data"))
	w.Until("its records are released", 9*time.Hour, func() bool { return len(w.HeldRecords()) == 0 })
	w.MustShow(map[string]string{"result": "succeeded", "attempts": "1"})
	w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
	w.Until("the finalizer goes", 9*time.Hour, func() bool { return !w.heldByUs(claim) })
	w.setPolicy(claim, corev1.PersistentVolumeReclaimDelete)
	fakecluster.Delete(w, fakecluster.User, claim)
	w.Until("nothing is left", 9*time.Hour, w.Empty)
	return w.sum()
}

// replaced: the first two PVs are too small, and the third fits.
func replaced(w *world, last int64) string {
	w.SetUpGold(fakecluster.Script(spoils(tooSmall), spoils(tooSmall)))
	w.StartMortal(last)
	claim := w.CreateClaim("data")
	w.Until("the claim is bound", 9*time.Hour, w.IsBound("data"))
	w.Until("its records are released", 9*time.Hour, func() bool { return len(w.HeldRecords()) == 0 })
	w.MustShow(map[string]string{"result": "succeeded", "attempts": "3"})
	if !w.Storage[string(claim.UID)] {
		w.T.Error("the volume is not there")
	}
	fakecluster.Delete(w, fakecluster.User, claim)
	w.Until("nothing is left", 9*time.Hour, w.Empty)
	return w.sum()
}

// grown: a claim is bound, asks for too much, for less, gets that after a failure, and is deleted.
func grown(w *world, last int64) string {
	w.SetUpExpandableGold(func(r *fakecluster.Run) fakecluster.Exit {
		switch {
		case r.Verb == contract.Provision:
			return making(asISCSI)(r)
		case r.Verb == contract.Expand && r.Request.Size > 10<<30:
			return fakecluster.Exit{Code: 65, Message: "claim: too much"}
		case r.Verb == contract.Expand && r.Number == 2:
			return fakecluster.Exit{Code: 75}
		default:
			return fakecluster.Works(r)
		}
	})
	w.StartMortal(last)
	claim := w.CreateClaim("data")
	w.Until("the claim is bound", 9*time.Hour, w.IsBound("data"))
	w.requestSize("100Gi")
	w.Until("it is refused", time.Hour, w.showsResize(infeasible, refused))
	w.requestSize("2Gi")
	w.Until("a person is asked", time.Hour, w.showsResize(nodePends, fsPends))
	fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) { fakecluster.Annotate(pv, contract.AnnFileSystem, "2Gi") })
	w.Until("the claim has its size", time.Hour, w.hasSize("2Gi"))
	fakecluster.Delete(w, fakecluster.User, claim)
	w.Until("nothing is left", 9*time.Hour, w.Empty)
	return w.sum()
}

// sum is all that a life did: its Jobs (without their numbers, since one that has expired gives its
// own back), what ran, and what is left.
func (w *world) sum() string {
	var made []string
	for _, c := range w.CreatedJobs("") {
		made = append(made, c.Now.GetLabels()[jobs.LabelVerb])
	}
	return fmt.Sprintf("Jobs %v, runs %v, storage %v", made, w.Verbs(), w.Storage)
}

// dispatcherWrites counts the dispatcher's writes, whichever process made them.
func (w *world) dispatcherWrites() int64 {
	n := int64(0)
	for _, c := range w.Server.History() {
		if c.By == "dispatcher" {
			n++
		}
	}
	return n
}

// Whatever the write after which it dies, and however long it stays away, another dispatcher takes
// up where it left off: the same Jobs, the same runs, the same end.
func TestDeathAtAnyWriteChangesNothing(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) { everyDeath(t, story, 0) })
	}
	t.Run("away for two hours", func(t *testing.T) { everyDeath(t, failedAndAbandoned, 2*time.Hour) })
}

// Found by test/skew: the Job of the run that had written the PV expired while no dispatcher ran, the
// record of an earlier one under another revision was left, and the PV was in doubt for ever.
func TestDeathAtAnyWriteLeavesNoPVInDoubt(t *testing.T) {
	var writes int64
	inWorld(t, func(w *world) { movedOn(w, 0); writes = w.dispatcherWrites() })
	for last := range writes {
		inWorld(t, func(w *world) {
			w.Downtime = 2 * time.Hour
			movedOn(w, last+1)
			w.MustEmit(onData, "VolumeInDoubt", 0)
			if w.Deaths != 1 {
				w.T.Errorf("%d deaths", w.Deaths)
			}
		})
	}
}

func everyDeath(t *testing.T, story life, downtime time.Duration) {
	t.Helper()
	var want string
	var writes int64
	inWorld(t, func(w *world) { want, writes = story(w, 0), w.dispatcherWrites() })
	if writes < 5 {
		t.Fatalf("an unbroken life has %d writes: it is none", writes)
	}
	deaths := int64(0)
	for last := range writes {
		inWorld(t, func(w *world) {
			w.Downtime = downtime
			if got := story(w, last+1); got != want && (downtime == 0 || ranOf(got) != ranOf(want)) {
				w.T.Errorf("killed after write %d:\ngot  %s\nwant %s", last+1, got, want)
			}
			deaths += w.Deaths
		})
	}
	if deaths != writes {
		t.Errorf("%d deaths for %d writes", deaths, writes)
	}
}

// ranOf returns what ran, without the Jobs. One that waits for its confirmation for as long as no
// dispatcher runs is replaced.
func ranOf(sum string) string {
	_, ran, _ := strings.Cut(sum, "runs")
	return ran
}

// A dispatcher dies after every single write: no two steps are ever made by the same process.
func TestDeathAtEveryWriteChangesNothing(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			var want string
			inWorld(t, func(w *world) { want = story(w, 0) })
			inWorld(t, func(w *world) {
				w.DieAfterEveryWrite = true
				if got := story(w, 1); got != want {
					w.T.Errorf("got  %s\nwant %s", got, want)
				}
			})
		})
	}
}

// Two leaders for a moment: neither the Jobs nor the storage may double.
func TestTwoLeadersDoTheSameAsOne(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			var want string
			inWorld(t, func(w *world) { want = story(w, 0) })
			inWorld(t, func(w *world) {
				w.Start()
				got := story(w, 0)
				w.Stop()
				if got != want {
					w.T.Errorf("got  %s\nwant %s", got, want)
				}
			})
		})
	}
}
