package model

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
)

// world is what is fixed during one exploration.
type world struct {
	name    string
	retain  bool   // the class's policy
	adopt   bool   // the volume exists before, with data
	selects bool   // the scheduler selects a node: WaitForFirstConsumer, and run-on: selected-node
	forgets bool   // volumes are on a node, and given up with it
	offers  bool   // write-pv: dispatcher
	grows   bool   // the user asks for more
	keeps   bool   // deleted volumes are kept for a while
	verbs   string // of the image
	acts    acts   // what people do, beside creating and deleting the claim
	most    uint8  // how many acts of people there are at most
	slow    bool   // a pod ends later than its container, and the Job controller counts it later
	fails   uint8  // how many containers fail at most
	leaders int
	late    bool  // a pod of a deleted Job may appear long after
	freezes uint8 // how often a cache of the second leader falls behind at most
	ahead   bool  // the claim is created without the PV controller's annotations
	inUse   bool  // the exploration begins with a claim that is bound
	// careless lets a reclaim be confirmed whatever has changed about its PV. It makes a mutant.
	careless bool
	// blind hides the static PV from the leaders. It makes a mutant.
	blind  bool
	states int // how many states are visited at most, the nearest; 0 is all
	// hard is what Kubernetes does in this world beside.
	hard hard
	// copies: the claim asks for a copy from the beginning.
	copies bool
	until  law // the exploration ends when this law is broken, if any
	// wrap changes what is decided. It makes mutants.
	wrap func(judge) judge
	// frees says when the pod of a Job is released instead of the shipped rule. It makes mutants.
	frees func(*batchv1.Job, []*corev1.Pod) bool

	built   built
	shows   shows
	configs map[uint8]config.Config
	judged  *resolve.Judged
}

// start returns the first state: a claim that was created a moment ago.
func (w *world) start() state {
	s := state{claim: claimPending, unasked: w.ahead, hard: w.hard}
	if w.selects {
		s.node = 1
	}
	if w.copies {
		s.source = 1
	}
	if w.late {
		s.kept = 1 // the first step of all is of no interest
	}
	if w.inUse {
		s.claim, s.storage, s.kept = claimBound, used, 1
		w.writePV(&s, 0)
		s.pv.phase = bound
	}
	return s
}

// worlds are explored one after another. In the quick ones only one group of people's acts is
// possible in each, and only the nearest states are visited.
func worlds(isFull bool) []world {
	out := []world{
		{name: "delete", verbs: "provision,delete", acts: rescues, most: 1, fails: 1, states: 9_000},
		{name: "delete, changes", verbs: "provision,delete", acts: changes, most: 1, fails: 1, states: 5_000},
		{name: "delete, changes and disturbed", verbs: "provision,delete", acts: changes | disturbs, most: 2, fails: 1, states: 5_000},
		{name: "delete, disturbed", verbs: "provision,delete", acts: disturbs, most: 1, states: 10_000},
		{name: "retain", verbs: "provision,delete", retain: true, acts: rescues, most: 1, fails: 1, states: 3_500},
		{name: "adopt", verbs: "provision,delete", adopt: true, acts: rescues, most: 1, states: 10_000},
		{name: "nodes", verbs: "provision,delete", selects: true, fails: 1, states: 10_000},
		{name: "node lost", verbs: "provision,delete", selects: true, forgets: true, acts: disturbs, most: 1, states: 10_000},
		{name: "offers", verbs: "provision,delete", offers: true, acts: rescues, most: 1, states: 10_000},
		{name: "done before its pod ends", verbs: "provision,delete,expand", grows: true, slow: true, acts: disturbs, most: 1, states: 15_000},
		{name: "offers before its pod ends", verbs: "provision,delete", offers: true, slow: true, acts: disturbs, most: 1, states: 10_000},
		{name: "grows", verbs: "provision,delete,expand", grows: true, fails: 1, states: 5_000},
		{name: "no delete", verbs: "provision", retain: true, slow: true, acts: rescues, most: 1, fails: 1, states: 4_000},
		{name: "two leaders", verbs: "provision,delete", leaders: 2, states: 30_000},
		{name: "two leaders, in use", verbs: "provision,delete", inUse: true, acts: rescues, most: 1, leaders: 2, states: 30_000},
		{name: "late pods", verbs: "provision,delete", acts: disturbs, most: 1, leaders: 2, freezes: 1, late: true, states: 70_000},
		{name: "old caches", verbs: "provision,delete", leaders: 2, freezes: 1, states: 50_000},
		{name: "old caches, in use", verbs: "provision,delete", inUse: true, acts: rescues, most: 1, leaders: 2, freezes: 1, states: 50_000},
		{name: "kept", verbs: "provision,delete", keeps: true, inUse: true, acts: trashes | rescues, most: 2, states: 15_000},
		{name: "kept, old caches", verbs: "provision,delete", keeps: true, inUse: true, acts: trashes, most: 1, leaders: 2, freezes: 1, states: 40_000},
		{name: "ahead", verbs: "provision,delete", ahead: true, acts: offersPV, most: 1, fails: 1, states: 8_000},
		{name: "ahead, nodes", verbs: "provision,delete", ahead: true, selects: true, fails: 1, states: 8_000},
		{name: "ahead, retained", verbs: "provision,delete", ahead: true, retain: true, acts: offersPV, most: 1, states: 8_000},
		{name: "ahead, old caches", verbs: "provision,delete", ahead: true, acts: offersPV, most: 1, leaders: 2, freezes: 1, states: 40_000},
	}
	if !isFull {
		return out
	}
	for i := range out {
		w := &out[i]
		if w.most < 2 { // two acts of any kind may do what no rule survives
			w.acts, w.most = w.acts|allActs, 1
		}
		w.fails, w.slow, w.states = max(w.fails, 1), true, fullStates
		if w.leaders == 2 {
			w.states = fullStatesOfTwo
		}
		if w.freezes > 0 {
			w.freezes = 2
		}
	}
	return out
}

// How many states are visited at most in each world of the full model. With two leaders a state
// costs less, since they decide on the same.
const (
	fullStates      = 60_000
	fullStatesOfTwo = 800_000
)
