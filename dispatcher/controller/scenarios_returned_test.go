package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// gaps are the times between the returns of a claim to the scheduler.
func (w *world) gaps() []time.Duration {
	var out []time.Duration
	all := w.returns()
	for i := 1; i < len(all); i++ {
		out = append(out, all[i].At.Sub(all[i-1].At))
	}
	return out
}

// The scheduler does not know which node is full, so it may select the full one several times
// before another.
func TestAClaimThatComesBackToAFullNodeReachesAnotherWithoutARun(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(roomOn("node-2"), []string{"node-1", "node-1", "node-1", "node-1", "node-2"})
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", 30*time.Second, w.IsBound("data"))
		if got, want := w.where(), []string{"provision on node-1", "delete on node-1", "provision on node-2"}; !slices.Equal(got, want) {
			w.T.Errorf("ran %v, want %v", got, want)
		}
		for i, gap := range w.gaps() {
			if least := time.Second << i; gap < least || gap > least+time.Second {
				w.T.Errorf("return %d came %s after the one before, want %s", i+2, gap, least)
			}
		}
		if n := len(w.returns()); n != 4 {
			w.T.Errorf("the node was taken off %d times", n)
		}
		w.MustEmit(onData, "Rescheduling", 4, "node-1", "NoCapacity", "the scheduler selects a node again")
		var again int
		for _, e := range w.Events.About(onData, "Rescheduling") {
			if strings.Contains(e.Note, "The node node-2 may have room, so no Job is created") {
				again++
			}
		}
		if again != 3 {
			w.T.Errorf("%d events say that the claim was returned without a run", again)
		}
	})
}

// A scheduler that prefers the full node is not asked for ever: the node is tried again at its
// time.
func TestAClaimThatAlwaysComesBackIsTriedThereAtTheUsualPace(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(fakecluster.Always(fakecluster.Fails(73, "")), []string{"node-1"})
		w.Start()
		w.CreateClaim("data")
		w.Advance(16 * time.Minute)
		runs := len(w.CreatedJobs(contract.Provision))
		if runs != 4 {
			w.T.Errorf("%d runs in 16 minutes, want one in 5 minutes", runs)
		}
		if n := len(w.returns()); n < 8*3 || n > 9*runs {
			w.T.Errorf("%d runs, and the node was taken off %d times, want 9 times a run", runs, n)
		}
	})
}

// The count is on the Job, so a dispatcher that dies all the time does not ask more often.
func TestTheCountOfReturnsOutlivesTheDispatcher(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(fakecluster.Always(fakecluster.Fails(73, "")), []string{"node-1"})
		w.DieAfterEveryWrite = true
		w.StartMortal(1)
		w.CreateClaim("data")
		w.Until("the sixth return", 5*time.Minute, func() bool { return len(w.returns()) == 6 })
		for i, gap := range w.gaps() {
			if least := time.Second << i; gap < least {
				w.T.Errorf("return %d came %s after the one before, want %s", i+2, gap, least)
			}
		}
	})
}

// Each change makes node-2 a node that the claim cannot go to.
func TestAClaimWaitsForAFullNodeWhenNoOtherIsAllowed(t *testing.T) {
	node := func(change func(*corev1.Node)) func(*world) {
		return func(w *world) {
			fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", "node-2"), change)
		}
	}
	tests := map[string]struct {
		change func(*world)
		keys   []string
		class  func(*storagev1.StorageClass)
	}{
		"not Ready": {change: node(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })},
		"cordoned":  {change: node(func(n *corev1.Node) { n.Spec.Unschedulable = true })},
		"tainted": {change: node(func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
		})},
		"elsewhere by the class": {class: func(c *storagev1.StorageClass) {
			c.AllowedTopologies = []corev1.TopologySelectorTerm{{
				MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelHostname, Values: []string{"node-1", "node-3"}}},
			}}
		}},
		"elsewhere by the config": {keys: []string{"run-on", "selected-node", "node-selector", "kubernetes.io/hostname=node-1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.chosenClass(fakecluster.Always(fakecluster.Fails(73, "")), []string{"node-1"}, tt.keys...)
				if tt.class != nil {
					fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*storagev1.StorageClass](w, "", "gold"), tt.class)
				}
				if tt.change != nil {
					tt.change(w)
				}
				w.Start()
				w.CreateClaim("data")
				w.Advance(4 * time.Minute)
				if n := len(w.returns()); n != 1 {
					w.T.Errorf("the node was taken off %d times, want once after the run", n)
				}
			})
		})
	}
}

// The pod tolerates what its selected node has.
func TestANodeWithTheTaintsOfTheSelectedOneIsAnother(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(roomOn("node-2"), []string{"node-1", "node-1", "node-2"})
		for _, name := range []string{"node-1", "node-2"} {
			fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", name), func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "storage", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
			})
		}
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", 30*time.Second, w.IsBound("data"))
	})
}

// A claim that goes from one full node to another and back has no node left: it waits for the first
// that is due.
func TestAClaimThatHasFoundEveryNodeFullWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		w.chosenClass(fakecluster.Always(fakecluster.Fails(73, "")), []string{"node-1", "node-1", "node-2", "node-1"})
		w.Start()
		w.CreateClaim("data")
		w.Advance(4 * time.Minute)
		if got, want := fmt.Sprint(w.where()), "[provision on node-1 delete on node-1 provision on node-2 delete on node-2]"; got != want {
			w.T.Errorf("ran %s, want %s", got, want)
		}
		if n := len(w.returns()); n != 3 {
			w.T.Errorf("the node was taken off %d times, want twice for node-1 and once for node-2", n)
		}
	})
}
