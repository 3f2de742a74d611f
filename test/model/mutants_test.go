package model

import (
	"maps"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// mutant is a wrong rule, the law that it breaks, and a world in which the shipped rules break
// none.
type mutant struct {
	law   law
	world world
	wrap  func(judge) judge
}

var mutants = map[string]mutant{
	"a bound volume is deleted, whatever its PV says when that is confirmed": {lawGuarded, careless(calm()), func(next judge) judge {
		return hastily(func(v decide.View) decide.Action {
			v.Volume.Use = decide.Released
			return next(v)
		})
	}},
	"a reclaim is confirmed whatever has become of its PV": {lawGuarded, careless(reclaims()), nil},
	"a reclaim is confirmed without being decided again":   {lawGuarded, reclaims(), hastily},
	"a volume that was in use is undone": {lawData, calm(), func(next judge) judge {
		return func(v decide.View) decide.Action {
			if v.Volume.Use == decide.Released {
				v.Volume = decide.Volume{}
			}
			return next(v)
		}
	}},
	"a run is confirmed whatever other pods show": {lawAlone, behind(), func(next judge) judge {
		return func(v decide.View) decide.Action {
			v.Runs = slices.Clone(v.Runs)
			for i := range v.Runs {
				v.Runs[i].OtherPod = ""
			}
			return next(v)
		}
	}},
	"a run is launched and confirmed beside another": {lawAlone, calm(), func(next judge) judge {
		return hastily(func(v decide.View) decide.Action {
			if p := v.Newest(contract.Provision); p != nil && p.Unfinished && !p.Gated && p.Stuck == nil && v.Claim == decide.ClaimPending {
				return decide.Launch{Verb: contract.Provision, Number: p.Number + 1, Attempt: 1}
			}
			return next(v)
		})
	}},
	"a run that never ran succeeds the one that did": {lawRecord, fails(), func(next judge) judge {
		return func(v decide.View) decide.Action {
			v.Runs = slices.Clone(v.Runs)
			p := v.Newest(contract.Provision)
			for i := range v.Runs {
				r := &v.Runs[i]
				r.NothingBefore = true
				if r.Held && !r.Unfinished && r.Recorded != nil && r.Verb == contract.Provision && r.Number < p.Number {
					return decide.ReleaseRecord{Run: *r}
				}
			}
			return next(v)
		}
	}},
	"nothing is undone": {lawRecord, fails(), func(next judge) judge {
		return func(v decide.View) decide.Action {
			action := next(v)
			if l, launches := action.(decide.Launch); launches && l.Undo {
				return decide.ReleaseRecord{Run: *v.Newest(contract.Provision)}
			}
			return action
		}
	}},
	"a result is published again and again": {lawCycle, fails(), func(next judge) judge {
		return func(v decide.View) decide.Action {
			if p := v.Newest(contract.Provision); p != nil && p.Recorded != nil && v.Claim == decide.ClaimPending {
				return decide.PublishResult{Run: *p}
			}
			return next(v)
		}
	}},
	"a withdrawal is cancelled before its pod is made": {lawRest, misfits(), func(next judge) judge {
		return func(v decide.View) decide.Action {
			d := v.Newest(contract.Delete)
			if d != nil && d.Unfinished && !d.Gated && d.Unstarted && !d.Terminating && !v.Volume.Terminating {
				return decide.Cancel{Run: *d}
			}
			return next(v)
		}
	}},
	"what an attempt has made of another source is not undone": {lawSource, copies(), func(next judge) judge {
		return func(v decide.View) decide.Action {
			action := next(v)
			if l, launches := action.(decide.Launch); launches && l.Undo && v.Claim == decide.ClaimPending {
				return decide.Launch{Verb: contract.Provision, Number: v.Newest(contract.Provision).Number + 1, Attempt: 1}
			}
			return action
		}
	}},
	"the pod of a run is released as soon as it has ended": {lawOutcome, freeing(fails(), func(_ *batchv1.Job, pods []*corev1.Pod) bool {
		return len(runs.ReleasablePods(pods)) > 0
	}), nil},
	"no pod is released": {lawRest, freeing(calm(), func(*batchv1.Job, []*corev1.Pod) bool { return false }), func(next judge) judge {
		return func(v decide.View) decide.Action {
			v.OrphanPod = false
			return next(v)
		}
	}},
	"a claim is served whatever PVs there are": {lawOther, blind(offered()), nil},
	"a failure is shown at once": {lawUnasked, offered(), func(next judge) judge {
		return func(v decide.View) decide.Action {
			v.Unasked = false
			return next(v)
		}
	}},
	"a claim that was bound to another PV counts as bound to its own": {lawRest, offered(), func(next judge) judge {
		return func(v decide.View) decide.Action {
			if v.Claim == decide.ClaimBoundElsewhere {
				v.Claim = decide.ClaimBound
			}
			v.Volume.Use = decide.InUse
			return next(v)
		}
	}},
	"a volume is deleted with its claim, whatever keep-deleted says": {lawKept, kept(), func(next judge) judge {
		return func(v decide.View) decide.Action {
			v.Volume.KeptUntil = time.Time{}
			return next(v)
		}
	}},
	"the finalizer stays on a PV whose volume was deleted": {lawRest, calm(), func(next judge) judge {
		return func(v decide.View) decide.Action {
			action := next(v)
			if set, _ := action.(decide.SetFinalizer); set.Remove {
				return decide.Wait{Why: "the PV goes"}
			}
			return action
		}
	}},
}

// hastily confirms a run as soon as it is gated.
func hastily(next judge) judge {
	return func(v decide.View) decide.Action {
		for _, r := range v.Runs {
			if r.Gated {
				return decide.Confirm{Run: r}
			}
		}
		return next(v)
	}
}

func careless(w world) world {
	w.careless = true
	return w
}

func blind(w world) world {
	w.blind = true
	return w
}

// freeing is a world in which the pods of Jobs are released otherwise.
func freeing(w world, frees func(*batchv1.Job, []*corev1.Pod) bool) world {
	w.frees = frees
	return w
}

// copies is a world in which the user asks for a copy between two attempts.
func copies() world {
	return world{name: "copies", verbs: "provision,delete", acts: clones, most: 1, fails: 1, states: 14_000}
}

// offered is a world in which Kubernetes may bind the claim to a PV that exists, before it has
// asked for a new one.
func offered() world {
	return world{name: "offered", verbs: "provision,delete", ahead: true, acts: offersPV, most: 1, fails: 1, states: 6_000}
}

// reclaims is a world in which an administrator may keep what is to be deleted.
func reclaims() world {
	return world{name: "reclaims", verbs: "provision,delete", inUse: true, acts: rescues, most: 1, leaders: 2, states: 60_000}
}

// behind is a world in which a cache of the second leader may be behind.
func behind() world {
	return world{name: "behind", verbs: "provision,delete", acts: disturbs, most: 1, leaders: 2, freezes: 1, late: true, states: 130_000}
}

// fails is a world in which a container may fail, or never start.
func fails() world { return world{name: "fails", verbs: "provision,delete", fails: 2, states: 20_000} }

// misfits is a world in which a container may write a PV that does not fit.
func misfits() world {
	return world{name: "misfits", verbs: "provision,delete", fails: 1, states: 6_000}
}

// kept is a world in which deleted volumes are kept for a while.
func kept() world {
	return world{name: "kept", verbs: "provision,delete", keeps: true, inUse: true, acts: trashes, most: 1, states: 6_000}
}

// calm is a world in which people do no more than create and delete the claim.
func calm() world { return world{name: "calm", verbs: "provision,delete", states: 6_000} }

func TestModelFindsAMutantOfEveryLaw(t *testing.T) {
	t.Parallel()
	missing := maps.Clone(lawNames)
	for name, mutant := range mutants {
		delete(missing, mutant.law)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := mutant.world
			w.until, w.wrap = mutant.law, mutant.wrap
			e := newExplorer(w)
			e.run()
			if !e.finds(mutant.law) {
				e.checkEnds()
			}
			if !e.finds(mutant.law) {
				t.Errorf("the model does not find it in %d states, %s: %v", len(e.nodes), e.extent(), e.findings)
			}
			t.Logf("found in %d states", len(e.nodes))
		})
	}
	for _, law := range missing {
		t.Errorf("no mutant breaks the law %q", law)
	}
}

func TestModelFindsNothingWithoutPeople(t *testing.T) {
	t.Parallel()
	e := newExplorer(calm())
	e.run()
	for b, at := range e.findings {
		t.Errorf("%s\n%s", b, e.trace(at, nil))
	}
	t.Logf("%d states, %s", len(e.nodes), e.extent())
}
