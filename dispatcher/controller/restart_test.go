package controller_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// life is a story from an empty world to an empty world. It returns what must be the same however
// often the dispatcher dies.
type life func(w *world, last int64) string

var stories = map[string]life{
	"born and deleted": bornAndDeleted, "failed and abandoned": failedAndAbandoned, "moved on": movedOn, "grown": grown,
	"withdrawn": withdrawn, "rescheduled": rescheduled,
}

// bornAndDeleted: a claim is bound, lives on, and is deleted.
func bornAndDeleted(w *world, last int64) string {
	w.goldClass(works)
	w.start(last)
	claim := w.claim("data")
	w.until("the claim is bound", 3*time.Hour, w.bound("data"))
	w.until("its record is released", 3*time.Hour, func() bool { return len(w.records()) == 0 })
	if !w.storage[string(claim.UID)] || !w.heldByUs(claim) {
		w.t.Error("the volume is not there, or not held")
	}
	w.mustShow(map[string]string{"result": "succeeded", "attempts": "1"})
	drop(w, user, claim)
	w.until("nothing is left", 3*time.Hour, w.empty)
	return w.sum()
}

// failedAndAbandoned: two runs fail halfway, the claim goes, the undo fails once. The user moves while
// the image runs: whoever is dead then, it is the same story.
func failedAndAbandoned(w *world, last int64) string {
	w.goldClass(func(r *run) ending {
		switch {
		case r.verb == contract.Provision:
			if r.number == 2 {
				drop(w, user, w.now("data"))
			}
			return halfway(75)(r)
		case r.number == 1:
			return ending{75, ""}
		default:
			return works(r)
		}
	})
	w.start(last)
	w.claim("data")
	w.until("it was undone", 9*time.Hour, func() bool { return len(w.runs) == 4 })
	w.until("nothing is left", 9*time.Hour, w.empty)
	return w.sum()
}

// movedOn: the config changes during a run that fails, so that it is undone and another follows; later
// the PV's policy is switched to and fro.
func movedOn(w *world, last int64) string {
	w.goldClass(always(func(r *run) ending {
		w.reconfigure("image", newer)
		return halfway(65)(r)
	}))
	w.images[newer] = image{does: works}
	w.start(last)
	claim := w.claim("data")
	w.until("the claim is bound", 9*time.Hour, w.bound("data"))
	w.until("its records are released", 9*time.Hour, func() bool { return len(w.records()) == 0 })
	w.mustShow(map[string]string{"result": "succeeded", "attempts": "1"})
	w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
	w.until("the finalizer goes", 9*time.Hour, func() bool { return !w.heldByUs(claim) })
	w.setPolicy(claim, corev1.PersistentVolumeReclaimDelete)
	drop(w, user, claim)
	w.until("nothing is left", 9*time.Hour, w.empty)
	return w.sum()
}

// withdrawn: the first PV is too small, the second is for nobody besides, and the third serves.
func withdrawn(w *world, last int64) string {
	w.goldClass(script(spoils(tooSmall), spoils(smallForNobody)))
	w.start(last)
	claim := w.claim("data")
	w.until("the claim is bound", 9*time.Hour, w.bound("data"))
	w.until("its records are released", 9*time.Hour, func() bool { return len(w.records()) == 0 })
	w.mustShow(map[string]string{"result": "succeeded", "attempts": "3"})
	if !w.storage[string(claim.UID)] {
		w.t.Error("the volume is not there")
	}
	drop(w, user, claim)
	w.until("nothing is left", 9*time.Hour, w.empty)
	return w.sum()
}

// grown: a claim is bound, asks for too much, for less, gets that after a failure, and is deleted.
func grown(w *world, last int64) string {
	w.growingClass(func(r *run) ending {
		switch {
		case r.verb == contract.Provision:
			return making(asISCSI)(r)
		case r.verb == contract.Expand && r.request.Size > 10<<30:
			return ending{65, "claim: too much"}
		case r.verb == contract.Expand && r.number == 2:
			return ending{75, ""}
		default:
			return works(r)
		}
	})
	w.start(last)
	claim := w.claim("data")
	w.until("the claim is bound", 9*time.Hour, w.bound("data"))
	w.ask("100Gi")
	w.until("it is refused", time.Hour, w.says(infeasible, refused))
	w.ask("2Gi")
	w.until("a person is asked", time.Hour, w.says(nodePends, fsPends))
	edit(w, admin, w.pvOf(claim), func(pv *corev1.PersistentVolume) { annotate(pv, contract.AnnFileSystem, "2Gi") })
	w.until("the claim has its size", time.Hour, w.has("2Gi"))
	drop(w, user, claim)
	w.until("nothing is left", 9*time.Hour, w.empty)
	return w.sum()
}

// sum is all that a life did: its Jobs (without their numbers, since one that has expired gives its own
// back), what ran, and what is left.
func (w *world) sum() string {
	var made []string
	for _, c := range w.made("") {
		made = append(made, c.now.GetLabels()[jobs.LabelVerb])
	}
	return fmt.Sprintf("Jobs %v, runs %v, storage %v", made, w.verbs(), w.storage)
}

// dispatcherWrites counts the dispatcher's writes, whichever process made them.
func (w *world) dispatcherWrites() int64 {
	n := int64(0)
	for _, c := range w.server.history() {
		if c.by == "dispatcher" {
			n++
		}
	}
	return n
}

// Whatever the write after which it dies, and however long it stays away, another dispatcher takes up
// where it left off: the same Jobs, the same runs, the same end.
func TestItem12ADispatcherThatDiesBetweenAnyTwoStepsChangesNothing(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) { everyDeath(t, story, 0) })
	}
	t.Run("away for two hours", func(t *testing.T) { everyDeath(t, failedAndAbandoned, 2*time.Hour) })
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
			w.downtime = downtime
			if got := story(w, last+1); got != want {
				w.t.Errorf("killed after write %d:\ngot  %s\nwant %s", last+1, got, want)
			}
			deaths += w.deaths
		})
	}
	if deaths != writes {
		t.Errorf("%d deaths for %d writes", deaths, writes)
	}
}

// A dispatcher dies after every single write: no two steps are ever made by the same process.
func TestItem12ADispatcherThatDiesAfterEveryStepGetsThereToo(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			var want string
			inWorld(t, func(w *world) { want = story(w, 0) })
			inWorld(t, func(w *world) {
				w.fragile = true
				if got := story(w, 1); got != want {
					w.t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		})
	}
}

// Two leaders for a moment: neither the Jobs nor the storage may double.
func TestRule14TwoDispatchersAtOnceDoTheSame(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			var want string
			inWorld(t, func(w *world) { want = story(w, 0) })
			inWorld(t, func(w *world) {
				w.start()
				first := w.dispatcher
				defer func() { w.dispatcher = first; w.stop() }()
				got := story(w, 0)
				w.stop()
				if got != want {
					w.t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		})
	}
}
