package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// roomOn is an image that finds room on some nodes only; on the others it fails halfway, for want of room.
func roomOn(nodes ...string) func(*run) ending {
	return always(func(r *run) ending {
		if !slices.Contains(nodes, r.request.SelectedNode) {
			return halfway(73)(r)
		}
		return works(r)
	})
}

// chosenClass is the class gold on the nodes node-1 and node-2, with a scheduler that chooses for its claims.
func (w *world) chosenClass(does func(*run) ending, choices []string, keys ...string) {
	w.images[gold] = image{does: does}
	w.class("gold", corev1.PersistentVolumeReclaimDelete, firstConsumer)
	w.account("true")
	w.config("gold", "gold", keys...)
	w.node("node-1")
	w.node("node-2")
	w.choices = choices
}

// returns are the writes by which the dispatcher took the node off a claim.
func (w *world) returns() []change {
	var out []change
	for _, c := range w.server.history() {
		was, isClaim := c.old.(*corev1.PersistentVolumeClaim)
		if isClaim && c.by == "dispatcher" && c.now != nil && was.Annotations[annNode] != "" && c.now.GetAnnotations()[annNode] == "" {
			out = append(out, c)
		}
	}
	return out
}

// where tells which verbs ran for which node, in order.
func (w *world) where() []string {
	var out []string
	for _, r := range w.runs {
		out = append(out, fmt.Sprintf("%s on %s", r.verb, r.request.SelectedNode))
	}
	return out
}

func TestItem07AClaimGoesToAnotherNodeWhenItsOwnIsFull(t *testing.T) {
	for _, runOn := range []string{"any", "selected-node"} {
		t.Run(runOn, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.chosenClass(roomOn("node-2"), []string{"node-1", "node-2"}, "run-on", runOn)
				w.start()
				w.claim("data")
				w.until("the claim is bound", 30*time.Second, w.bound("data"))
				if got, want := w.where(), []string{"provision on node-1", "delete on node-1", "provision on node-2"}; !slices.Equal(got, want) {
					w.t.Errorf("ran %v, want %v", got, want)
				}
				if n := len(w.returns()); n != 1 {
					w.t.Fatalf("the node was taken off %d times", n)
				}
				if w.returns()[0].at.Before(w.runs[1].at) {
					w.t.Error("the claim was given back before its first node was cleaned")
				}
				w.mustTell(onData, "ProvisioningFailed", 1, "NoCapacity", "sooner on another node")
				w.mustTell(onData, "Rescheduling", 1, "node-1", "NoCapacity", w.made("")[0].name)
				w.mustShow(map[string]string{"result": "succeeded", "attempts": "2"})
			})
		})
	}
}

// The scheduler knows nothing of the storage: it may well choose the full node again.
func TestItem07TheSameNodeChosenAgainWaitsForItsPause(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(always(fails(73, "claim: full")), []string{"node-1"})
		w.start()
		w.claim("data")
		w.run(time.Hour)
		runs := len(w.made(contract.Provision))
		if runs < 11 || runs > 12 {
			w.t.Errorf("%d runs in an hour, want one in 5 minutes", runs)
		}
		for _, pause := range w.pauses(contract.Provision) {
			if pause != 5*time.Minute {
				w.t.Errorf("a pause of %s", pause)
			}
		}
		if n := len(w.returns()); n != runs {
			w.t.Errorf("%d runs, and the node was taken off %d times", runs, n)
		}
	})
}

// A cluster that is full is no race between the scheduler and the dispatcher.
func TestItem07AFullClusterIsTriedAtAPaceThatSlowsDown(t *testing.T) {
	inWorld(t, func(w *world) {
		var choices []string
		for range 100 {
			choices = append(choices, "node-1", "node-2")
		}
		w.chosenClass(always(fails(73, "")), choices)
		w.start()
		w.claim("data")
		w.run(time.Hour)
		last := map[string]time.Time{}
		for _, r := range w.runs {
			node := r.request.SelectedNode
			if pause := r.at.Sub(last[node]); r.verb == contract.Provision && pause < 5*time.Minute {
				w.t.Errorf("%s was tried again after %s", node, pause)
			}
			last[node] = r.at
		}
		if n := len(w.made(contract.Provision)); n < 12 || n > 26 {
			w.t.Errorf("%d runs in an hour", n)
		}
	})
}

// However many nodes are full, the claim does not race from one to the next.
func TestItem07EachFurtherFullNodeIsTriedLater(t *testing.T) {
	inWorld(t, func(w *world) {
		var choices []string
		for i := range 30 {
			choices = append(choices, fmt.Sprintf("n%d", i))
		}
		w.chosenClass(always(fails(73, "")), choices)
		for _, name := range choices {
			w.node(name)
		}
		w.start()
		w.claim("data")
		w.until("eight nodes were tried", time.Hour, func() bool { return len(w.made(contract.Provision)) == 8 })
		for i, pause := range w.pauses(contract.Provision) {
			if least := time.Second << i; pause < least || pause > least+10*time.Second {
				w.t.Errorf("node %d was tried after %s, want %s and the time of an undo", i+2, pause, least)
			}
		}
	})
}

func TestItem07AnImmediateClaimIsNeverRescheduled(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(fails(73, "")))
		w.start()
		w.claim("data", on("node-1")) // of no meaning, but a user can write it
		w.until("a third run", 15*time.Minute, func() bool { return len(w.ran(contract.Provision)) == 3 })
		if len(w.returns()) > 0 || len(w.events.said(onData, "Rescheduling")) > 0 {
			w.t.Error("it was given back to the scheduler, which did not choose")
		}
		w.mustNotSay("another node")
	})
}

func TestItem07AfterTheLastAttemptTheSchedulerIsNotAsked(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(always(fails(73, "")), []string{"node-1", "node-2"}, "max-attempts", "2")
		w.start()
		w.claim("data")
		w.run(time.Hour)
		if len(w.runs) < 2 || w.runs[len(w.runs)-1].number != 2 || len(w.returns()) != 1 {
			w.t.Errorf("ran %v, and the node was taken off %d times", w.where(), len(w.returns()))
		}
		w.mustSay(onData, "Stalled", "max-attempts")
	})
}

// rescheduled: the first node is full, the scheduler chooses the second; the claim is bound and deleted.
func rescheduled(w *world, last int64) string {
	w.chosenClass(roomOn("node-2"), []string{"node-1", "node-2"})
	w.start(last)
	claim := w.claim("data")
	w.until("the claim is bound", 9*time.Hour, w.bound("data"))
	w.until("its records are released", 9*time.Hour, func() bool { return len(w.records()) == 0 })
	drop(w, user, claim)
	w.until("nothing is left", 9*time.Hour, w.empty)
	return fmt.Sprintf("%s, given back %d times", w.sum(), len(w.returns()))
}

// Between the announcement and the removal somebody writes on the claim: nobody can tell then whether the scheduler
// has been asked, so it is not asked again; the node has another try at its time, and the scheduler after that.
func TestItem07AClaimThatChangedAfterTheAnnouncementIsNotTouched(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(roomOn("node-2"), []string{"node-1", "node-2"})
		w.fragile = true // every dispatcher dies after its first write
		w.downtime = 10 * time.Second
		w.start(1)
		claim := w.claim("data")
		announced := func() bool {
			return slices.ContainsFunc(every[*batchv1.Job](w), func(j *batchv1.Job) bool {
				return j.Annotations[jobs.AnnRescheduled(string(claim.UID))] != ""
			})
		}
		go func() { // while no dispatcher is there
			for !announced() {
				time.Sleep(time.Second)
			}
			edit(w, user, claim, func(c *corev1.PersistentVolumeClaim) { annotate(c, "example.kubernetes.io/team", "blue") })
		}()
		w.until("it is announced", 10*time.Minute, announced)
		w.run(3 * time.Minute)
		if n := len(w.returns()); n != 0 {
			w.t.Fatalf("the node was taken off %d times", n)
		}
		w.until("the claim is bound", 20*time.Minute, w.bound("data"))
		if n := len(w.returns()); n != 1 {
			w.t.Errorf("the node was taken off %d times", n)
		}
	})
}

// The last moment: the dispatcher has looked at the claim, and somebody else writes on it before it does.
func TestItem07TheNodeIsTakenOffTheVeryClaimThatWasLookedAt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(roomOn("node-2"), []string{"node-1", "node-2"})
		w.server.overtake = func(at place, patch []byte) func(object) {
			if at.resource != "persistentvolumeclaims" || !strings.Contains(string(patch), annNode) {
				return nil
			}
			w.server.overtake = nil // once
			return func(claim object) { annotate(claim, "example.kubernetes.io/team", "blue") }
		}
		w.start()
		w.claim("data")
		w.run(4 * time.Minute)
		if n := len(w.returns()); n != 0 || len(w.events.said(onData, "Rescheduling")) != 0 {
			w.t.Fatalf("the node was taken off %d times", n)
		}
		w.until("the claim is bound", 20*time.Minute, w.bound("data"))
	})
}

func TestItem07AClaimWhoseSelectedNodeHasGoneIsGivenBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(works, []string{"node-9", "node-1"}, "run-on", "selected-node")
		w.start()
		w.claim("data")
		w.until("the claim is bound", 30*time.Second, w.bound("data"))
		if got := w.where(); !slices.Equal(got, []string{"provision on node-1"}) || len(w.made("")) != 1 {
			w.t.Errorf("ran %v by %d Jobs", got, len(w.made("")))
		}
		w.mustTell(onData, "Rescheduling", 1, "node-9", "does not exist any more")
	})
}

// The Job was launched in time, but its pod was not placed: nobody waits for it when the node goes.
func TestItem07AJobThatWaitsForANodeThatGoesIsCancelled(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(works, []string{"node-3", "node-1"}, "run-on", "selected-node")
		node := w.node("node-3", "other")
		w.stuck["data"] = true
		w.start()
		w.claim("data")
		w.until("its Job is there", time.Minute, func() bool { return len(w.made("")) == 1 })
		drop(w, admin, node)
		w.stuck["data"] = false
		w.until("the claim is bound", time.Minute, w.bound("data"))
		if got := w.where(); !slices.Equal(got, []string{"provision on node-1"}) {
			w.t.Errorf("ran %v", got)
		}
	})
}

// A node that is cordoned or full of pods for the whole timeout of a run is as good as gone.
func TestItem07AClaimWhoseNodeNeverTakesTheJobIsGivenBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(works, []string{"node-1", "node-2"}, "run-on", "selected-node", "timeout", "2m")
		w.cordoned = "node-1"
		w.start()
		w.claim("data")
		w.until("the claim is bound", 5*time.Minute, w.bound("data"))
		if got := w.where(); !slices.Equal(got, []string{"provision on node-2"}) || len(w.returns()) != 1 {
			w.t.Errorf("ran %v, given back %d times", got, len(w.returns()))
		}
	})
}

// What runs on the node that goes is waited out and undone before the claim moves on.
func TestItem07ARunOnANodeThatGoesIsUndoneFirst(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(works, []string{"node-1", "node-2"}, "run-on", "selected-node", "node-gone", "any-node")
		w.images[gold] = image{does: works, takes: 5 * time.Minute}
		w.start()
		w.claim("data")
		w.until("a pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
		pod := w.running()[0]
		drop(w, admin, get[*corev1.Node](w, "", "node-1"))
		w.lostNode = true
		w.collectOrphan(pod)
		w.until("the undo", time.Hour, func() bool { return len(w.made(contract.Delete)) == 1 })
		w.mustStartAfterDeadline(pod)
		w.lostNode = false
		w.until("the claim is bound", time.Hour, w.bound("data"))
		if got := w.where(); !slices.Equal(got, []string{"delete on node-1", "provision on node-2"}) {
			w.t.Errorf("ran %v", got)
		}
	})
}
