package model

import (
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// mutants are wrong rules, each with the law that it breaks. They are explored in a world in which the shipped rules
// break none.
var mutants = map[string]struct {
	law  law
	wrap func(judge) judge
}{
	"a bound volume is deleted": {lawGuarded, func(next judge) judge {
		return func(v decide.View) decide.Action {
			v.Volume.Released, v.Volume.Orphaned = v.Volume.Exists, v.Volume.Exists
			return next(v)
		}
	}},
	"a volume that was in use is undone": {lawData, func(next judge) judge {
		return func(v decide.View) decide.Action {
			if v.Volume.Released {
				v.Volume = decide.Volume{}
			}
			return next(v)
		}
	}},
	"a run is launched beside another": {lawAlone, func(next judge) judge {
		return func(v decide.View) decide.Action {
			if p := v.Newest(contract.Provision); p != nil && p.Unfinished && p.Stuck == nil && v.Claim == decide.ClaimPending {
				return decide.Launch{Verb: contract.Provision, Number: p.Number + 1, Attempt: 1}
			}
			return next(v)
		}
	}},
}

// calm is a world in which people do no more than create and delete the claim.
func calm() world { return world{name: "calm", verbs: "provision,delete", states: 6_000} }

func TestModelFindsAMutantOfEveryLaw(t *testing.T) {
	missing := map[law]bool{}
	for l := range lawNames {
		missing[l] = true
	}
	for name, mutant := range mutants {
		w := calm()
		w.first = true
		w.wrap = mutant.wrap
		e := newExplorer(w)
		e.run()
		is := false
		for b := range e.findings {
			is = is || b.law == mutant.law
		}
		if !is {
			t.Errorf("%s: the model does not find it in %d states", name, len(e.nodes))
		}
		delete(missing, mutant.law)
	}
	for l := range missing {
		t.Errorf("no mutant breaks the law %q", lawNames[l])
	}
}

func TestModelFindsNothingWithoutPeople(t *testing.T) {
	e := newExplorer(calm())
	e.run()
	for b, at := range e.findings {
		t.Errorf("%s\n%s", b, e.trace(at))
	}
	t.Logf("%d states, %s", len(e.nodes), e.extent())
}

// patient never cancels a delete that has not started, as the rules did once: the defect A1.
func patient(next judge) judge {
	return func(v decide.View) decide.Action {
		action := next(v)
		if cancel, cancels := action.(decide.Cancel); cancels && cancel.Run.Verb == contract.Delete {
			return decide.Wait{Why: "the Job " + cancel.Run.Name + " runs"}
		}
		return action
	}
}

// The model is of use only if it finds a defect that was corrected when the correction is taken away.
func TestModelNoticesACorrection(t *testing.T) {
	for _, isCorrected := range []bool{false, true} {
		w := world{name: "reclaims", verbs: "provision,delete", acts: rescues, most: 1, states: 5_000}
		if !isCorrected {
			w.wrap = patient
		}
		e := newExplorer(w)
		e.run()
		found := false
		for b, at := range e.findings {
			if b.right && b.guarded == ownPV {
				found = true
				if isCorrected {
					t.Logf("%s\n%s", b, e.trace(at))
				}
			}
		}
		if found == isCorrected {
			t.Errorf("corrected %t: found %t", isCorrected, found)
		}
	}
}
