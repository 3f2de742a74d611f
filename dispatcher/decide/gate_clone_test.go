package decide

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// gatedClone returns a view of a claim whose clone waits at its gate.
func gatedClone() View {
	r := gated(run(contract.Provision, 1))
	r.Clones = true
	return View{Now: now, Claim: ClaimPending, Provision: provisionTargets()[1], Delete: deleteTargets()[1], Runs: []Run{r}}
}

// By an old cache a clone would be made of a volume of which a delete has left a part.
func TestACloneIsConfirmedOnLiveFacts(t *testing.T) {
	v := gatedClone()
	if a, confirms := Decide(v).(Confirm); !confirms || !a.NeedsLive {
		t.Errorf("got %#v", Decide(v))
	}
	v.Runs[0].Clones = false
	if a, confirms := Decide(v).(Confirm); !confirms || a.NeedsLive {
		t.Errorf("no clone: got %#v", Decide(v))
	}
}

// The consent was known when the run was launched. A run of its own waits until it is known again, and a
// batch for the seconds that this takes: it may have been revoked meanwhile.
func TestACloneAtItsGateKeepsItsConsentWhileThatIsReadAgain(t *testing.T) {
	v := gatedClone()
	v.Provision.Problem, v.Provision.ConsentUnknown = &Problem{Reason: reason.SourceRefused}, true
	v.Now = v.Runs[0].GatedSince.Add(time.Hour)
	if _, reports := Decide(v).(ReportProblem); !reports {
		t.Errorf("alone: got %#v", Decide(v))
	}
	v.Runs[0].UIDs = []string{v.Runs[0].UIDs[0], "another"}
	if _, confirms := Decide(v).(Confirm); !confirms {
		t.Errorf("in a batch: got %#v", Decide(v))
	}
	early := v
	early.Now = v.Runs[0].GatedSince.Add(askedAgain - 1)
	if _, reports := Decide(early).(ReportProblem); !reports {
		t.Errorf("in a batch, before it was asked again: got %#v", Decide(early))
	}
	v.Runs[0].UIDs = v.Runs[0].UIDs[:1]
	refused := v
	refused.Provision.ConsentUnknown = false
	if _, cancels := Decide(refused).(Cancel); !cancels {
		t.Errorf("refused: got %#v", Decide(refused))
	}
	v.Runs = nil
	if _, reports := Decide(v).(ReportProblem); !reports {
		t.Errorf("without a run: got %#v", Decide(v))
	}
}
