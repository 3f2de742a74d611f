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
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// roomOn is an image that finds room on some nodes only; on the others it fails halfway, for want
// of room.
func roomOn(nodes ...string) func(*fakecluster.Run) fakecluster.Exit {
	return fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
		if !slices.Contains(nodes, r.Request.SelectedNode) {
			return fakecluster.Halfway(73)(r)
		}
		return fakecluster.Works(r)
	})
}

// chosenClass is the class gold on the nodes node-1 and node-2, with a scheduler that chooses for
// its claims.
func (w *world) chosenClass(does func(*fakecluster.Run) fakecluster.Exit, choices []string, keys ...string) {
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: does}
	w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, fakecluster.WaitForFirstConsumer)
	w.CreateServiceAccount("true")
	w.CreateConfig("gold", "gold", keys...)
	w.CreateNode("node-1")
	w.CreateNode("node-2")
	w.Choices = choices
}

// returns are the writes by which the dispatcher took the node off a claim.
func (w *world) returns() []fakecluster.Change {
	var out []fakecluster.Change
	for _, c := range w.Server.History() {
		was, isClaim := c.Old.(*corev1.PersistentVolumeClaim)
		if isClaim && c.By == "dispatcher" && c.Now != nil && was.Annotations[fakecluster.AnnSelectedNode] != "" && c.Now.GetAnnotations()[fakecluster.AnnSelectedNode] == "" {
			out = append(out, c)
		}
	}
	return out
}

// cordon marks a node as unschedulable. The scheduler here selects it for claims all the same.
func (w *world) cordon(node string) {
	fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", node), func(n *corev1.Node) { n.Spec.Unschedulable = true })
}

// where returns which verbs ran for which node, in order.
func (w *world) where() []string {
	var out []string
	for _, r := range w.Runs {
		out = append(out, fmt.Sprintf("%s on %s", r.Verb, r.Request.SelectedNode))
	}
	return out
}

func TestAClaimGoesToAnotherNodeWhenItsOwnIsFull(t *testing.T) {
	for _, runOn := range []string{"any", "selected-node"} {
		t.Run(runOn, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.chosenClass(roomOn("node-2"), []string{"node-1", "node-2"}, "run-on", runOn)
				w.Start()
				w.CreateClaim("data")
				w.Until("the claim is bound", 30*time.Second, w.IsBound("data"))
				if got, want := w.where(), []string{"provision on node-1", "delete on node-1", "provision on node-2"}; !slices.Equal(got, want) {
					w.T.Errorf("ran %v, want %v", got, want)
				}
				if n := len(w.returns()); n != 1 {
					w.T.Fatalf("the node was taken off %d times", n)
				}
				if w.returns()[0].At.Before(w.Runs[1].At) {
					w.T.Error("the claim was given back before its first node was cleaned")
				}
				w.MustEmit(onData, "ProvisioningFailed", 1, "NoCapacity", "or sooner if the scheduler selects another node")
				w.MustEmit(onData, "Rescheduling", 1, "node-1", "NoCapacity", w.CreatedJobs("")[0].Name)
				w.MustShow(map[string]string{"result": "succeeded", "attempts": "2"})
			})
		})
	}
}

// The scheduler knows nothing of the storage: it may well choose the full node again, even where
// that is the only one.
func TestTheSameNodeSelectedAgainWaitsForItsBackoff(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(fakecluster.Always(fakecluster.Fails(73, "claim: full")), []string{"node-1"})
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", "node-2"))
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Hour)
		runs := len(w.CreatedJobs(contract.Provision))
		if runs < 11 || runs > 12 {
			w.T.Errorf("%d runs in an hour, want one in 5 minutes", runs)
		}
		for _, pause := range w.pauses(contract.Provision) {
			if pause != 5*time.Minute {
				w.T.Errorf("a pause of %s", pause)
			}
		}
		if n := len(w.returns()); n != runs {
			w.T.Errorf("%d runs, and the node was taken off %d times", runs, n)
		}
	})
}

// A cluster that is full is no race between the scheduler and the dispatcher.
func TestAFullClusterIsRetriedLessAndLessOften(t *testing.T) {
	inWorld(t, func(w *world) {
		var choices []string
		for range 100 {
			choices = append(choices, "node-1", "node-2")
		}
		w.chosenClass(fakecluster.Always(fakecluster.Fails(73, "")), choices)
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Hour)
		last := map[string]time.Time{}
		for _, r := range w.Runs {
			node := r.Request.SelectedNode
			if pause := r.At.Sub(last[node]); r.Verb == contract.Provision && pause < 5*time.Minute {
				w.T.Errorf("%s was tried again after %s", node, pause)
			}
			last[node] = r.At
		}
		if n := len(w.CreatedJobs(contract.Provision)); n < 12 || n > 26 {
			w.T.Errorf("%d runs in an hour", n)
		}
	})
}

// However many nodes are full, the claim does not race from one to the next.
func TestEachFurtherFullNodeIsTriedLater(t *testing.T) {
	inWorld(t, func(w *world) {
		var choices []string
		for i := range 30 {
			choices = append(choices, fmt.Sprintf("n%d", i))
		}
		w.chosenClass(fakecluster.Always(fakecluster.Fails(73, "")), choices)
		for _, name := range choices {
			w.CreateNode(name)
		}
		w.Start()
		w.CreateClaim("data")
		w.Until("eight nodes were tried", time.Hour, func() bool { return len(w.CreatedJobs(contract.Provision)) == 8 })
		for i, pause := range w.pauses(contract.Provision) {
			if least := time.Second << i; pause < least || pause > least+10*time.Second {
				w.T.Errorf("node %d was tried after %s, want %s and the time of an undo", i+2, pause, least)
			}
		}
	})
}

func TestAnImmediateClaimIsNeverRescheduled(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Fails(73, "")))
		w.Start()
		w.CreateClaim("data", fakecluster.SelectNode("node-1")) // of no meaning, but a user can write it
		w.Until("a third run", 15*time.Minute, func() bool { return len(w.RunsOf(contract.Provision)) == 3 })
		if len(w.returns()) > 0 || len(w.Events.About(onData, "Rescheduling")) > 0 {
			w.T.Error("it was given back to the scheduler, which did not choose")
		}
		w.MustNotContain("", "another node")
	})
}

func TestAfterTheLastAttemptTheSchedulerIsNotAsked(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(fakecluster.Always(fakecluster.Fails(73, "")), []string{"node-1", "node-2"}, "max-attempts", "2")
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Hour)
		if len(w.Runs) < 2 || w.Runs[len(w.Runs)-1].Number != 2 || len(w.returns()) != 1 {
			w.T.Errorf("ran %v, and the node was taken off %d times", w.where(), len(w.returns()))
		}
		w.MustEmitSome(onData, "Stalled", "max-attempts")
	})
}

// rescheduled: the first node is full, and the scheduler chooses it once more before the second;
// the claim is bound and deleted.
func rescheduled(w *world, last int64) string {
	w.chosenClass(roomOn("node-2"), []string{"node-1", "node-1", "node-2"})
	w.StartMortal(last)
	claim := w.CreateClaim("data")
	w.Until("the claim is bound", 9*time.Hour, w.IsBound("data"))
	w.Until("its records are released", 9*time.Hour, func() bool { return len(w.HeldRecords()) == 0 })
	fakecluster.Delete(w, fakecluster.User, claim)
	w.Until("nothing is left", 9*time.Hour, w.Empty)
	return fmt.Sprintf("%s, given back %d times", w.sum(), len(w.returns()))
}

// Between the announcement and the removal a user writes on the claim: it is unknown then whether
// the scheduler has been asked, so it is not asked again; the node has another try at its time, and
// the scheduler after that.
func TestAClaimThatChangedAfterTheAnnouncementIsNotTouched(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(roomOn("node-2"), []string{"node-1", "node-2"})
		w.cordon("node-2")          // so that only the run's own return is announced
		w.DieAfterEveryWrite = true // every dispatcher dies after its first write
		w.Downtime = 10 * time.Second
		w.StartMortal(1)
		claim := w.CreateClaim("data")
		announced := func() bool {
			return slices.ContainsFunc(fakecluster.List[*batchv1.Job](w), func(j *batchv1.Job) bool {
				return jobs.RecordOf(j, string(claim.UID)).Rescheduled != ""
			})
		}
		go func() { // while no dispatcher is there
			for !announced() {
				time.Sleep(time.Second)
			}
			fakecluster.Update(w, fakecluster.User, claim, func(c *corev1.PersistentVolumeClaim) { fakecluster.Annotate(c, "example.kubernetes.io/team", "blue") })
		}()
		w.Until("it is announced", 10*time.Minute, announced)
		w.Advance(3 * time.Minute)
		if n := len(w.returns()); n != 0 {
			w.T.Fatalf("the node was taken off %d times", n)
		}
		w.Until("the claim is bound", 20*time.Minute, w.IsBound("data"))
		if n := len(w.returns()); n != 1 {
			w.T.Errorf("the node was taken off %d times", n)
		}
	})
}

// The last moment: the dispatcher has observed the claim, and a user writes on it before it does.
func TestTheNodeIsTakenOffOnlyTheClaimThatWasObserved(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(roomOn("node-2"), []string{"node-1", "node-2"})
		w.cordon("node-2") // so that only the run's own return is announced
		once := false
		w.Server.Overtake(func(verb string, at fakecluster.Key, patch []byte) func(fakecluster.Object) {
			if once || verb != "patch" || at.Resource != "persistentvolumeclaims" || !strings.Contains(string(patch), fakecluster.AnnSelectedNode) {
				return nil
			}
			once = true
			return func(claim fakecluster.Object) { fakecluster.Annotate(claim, "example.kubernetes.io/team", "blue") }
		})
		w.Start()
		w.CreateClaim("data")
		w.Advance(4 * time.Minute)
		if n := len(w.returns()); n != 0 || len(w.Events.About(onData, "Rescheduling")) != 0 {
			w.T.Fatalf("the node was taken off %d times", n)
		}
		w.Until("the claim is bound", 20*time.Minute, w.IsBound("data"))
	})
}

func TestAClaimWhoseSelectedNodeNoLongerExistsIsRescheduled(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(fakecluster.Works, []string{"node-9", "node-1"}, "run-on", "selected-node")
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", 30*time.Second, w.IsBound("data"))
		if got := w.where(); !slices.Equal(got, []string{"provision on node-1"}) || len(w.CreatedJobs("")) != 1 {
			w.T.Errorf("ran %v by %d Jobs", got, len(w.CreatedJobs("")))
		}
		w.MustEmit(onData, "Rescheduling", 1, "node-9", "no longer exists")
	})
}
