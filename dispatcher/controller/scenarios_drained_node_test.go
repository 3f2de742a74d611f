package controller_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// evict ends the pod that runs, as a drain or a preemption does.
func (w *world) evict() {
	w.T.Helper()
	w.Until("a pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
	pod := w.RunningPods()[0]
	fakecluster.Update(w, fakecluster.Admin, pod, func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"}}
	})
	fakecluster.Delete(w, fakecluster.Admin, pod)
	w.Until("it has ended", time.Minute, func() bool { return len(w.RunningPods()) == 0 })
}

// drain cordons node-1 and evicts the pod that runs, as kubectl does.
func (w *world) drain() {
	w.T.Helper()
	w.cordon("node-1")
	w.evict()
}

func (w *world) uncordon(node string) {
	fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", node), func(n *corev1.Node) { n.Spec.Unschedulable = false })
}

// slowClass is the class gold on two nodes, whose runs take a while, and a claim of it.
func (w *world) slowClass(runOn string, choices ...string) {
	w.chosenClass(nil, choices, "run-on", runOn)
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: localWorks, Takes: 5 * time.Second}
	w.Start()
	w.CreateClaim("data")
}

// A run tolerates the taint of a cordoned node, so it was once made again there. Volume and pod then
// were on a node that was to be empty.
func TestAClaimLeavesANodeThatIsDrained(t *testing.T) {
	for name, evicted := range map[string]func(*world){
		"the provision":              func(*world) {},
		"the provision and its undo": (*world).evict, // which is repeated
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.slowClass("selected-node", "node-1", "node-2")
				w.drain()
				evicted(w)
				w.Until("the claim is bound", 10*time.Minute, w.IsBound("data"))
				if got := w.where(); !slices.Equal(got, []string{"delete on node-1", "provision on node-2"}) || len(w.returns()) != 1 {
					w.T.Errorf("ran %v, given back %d times", got, len(w.returns()))
				}
				if w.returns()[0].At.Before(w.Runs[0].At) {
					w.T.Error("the claim was given back before the undo")
				}
				w.MustEmit(onData, "Rescheduling", 1, "node-1", "Disrupted", w.CreatedJobs("")[0].Name)
				w.MustShow(map[string]string{"result": "succeeded", "attempts": "1"})
			})
		})
	}
}

// Where the node is not cordoned any more, or never was, or is not the volume's, the run is repeated.
func TestARunThatIsEvictedIsRepeatedThereUnlessItsNodeIsDrained(t *testing.T) {
	for name, tt := range map[string]struct {
		runOn string
		evict func(*world)
		runs  []string
	}{
		"by a preemption": {"selected-node", (*world).evict, []string{"provision on node-1"}},
		"run-on: any":     {"any", (*world).drain, []string{"provision on node-1"}},
		"uncordoned before the undo has ended": {"selected-node", func(w *world) {
			w.drain()
			w.Until("the undo runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
			w.uncordon("node-1")
		}, []string{"delete on node-1", "provision on node-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.slowClass(tt.runOn, "node-1", "node-2")
				tt.evict(w)
				w.Until("the claim is bound", 10*time.Minute, w.IsBound("data"))
				if got := w.where(); !slices.Equal(got, tt.runs) || len(w.returns()) != 0 {
					w.T.Errorf("ran %v, given back %d times", got, len(w.returns()))
				}
			})
		})
	}
}

// A pod that tolerates the taint is placed there again. The scheduler is asked once a run, and the run
// is repeated at the usual pace.
func TestADrainedNodeThatIsSelectedAgainIsTriedAtTheUsualPace(t *testing.T) {
	inWorld(t, func(w *world) {
		w.slowClass("selected-node", "node-1")
		for i := range 3 {
			w.Until("the next provision", time.Minute, func() bool { return len(w.CreatedJobs(contract.Provision)) == i+1 })
			w.drain()
		}
		w.Until("the claim is bound", 10*time.Minute, w.IsBound("data"))
		if n, runs := len(w.returns()), len(w.CreatedJobs(contract.Provision)); n != 3 || runs != 4 {
			w.T.Errorf("%d runs, given back %d times", runs, n)
		}
		for _, pause := range w.pauses(contract.Provision) {
			if pause < 10*time.Second {
				w.T.Errorf("a pause of %s", pause)
			}
		}
	})
}

// What has a volume there is repeated there, also on a cordoned node.
func TestADeleteThatADrainEvictsIsRepeatedOnItsNode(t *testing.T) {
	inWorld(t, func(w *world) {
		w.slowClass("selected-node", "node-1", "node-2")
		w.Until("the claim is bound", 10*time.Minute, w.IsBound("data"))
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.drain()
		w.Until("nothing is left", 10*time.Minute, w.Empty)
		if got := w.where(); !slices.Equal(got, []string{"provision on node-1", "delete on node-1"}) || len(w.CreatedJobs(contract.Delete)) != 2 {
			w.T.Errorf("ran %v by %d Jobs", got, len(w.CreatedJobs("")))
		}
	})
}
