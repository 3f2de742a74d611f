package decide

import (
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// inABatch is a bound claim whose volume was just made in a batch.
func inABatch() View {
	r := recorded(run(contract.Provision, 1), contract.Done, 0)
	r.UIDs, r.Held, r.Outcome.Finished = []string{"u1", "u2"}, false, now
	return View{Now: now, Claim: ClaimBound, Volume: Volume{State: Fits, UID: pvUID, PolicyDelete: true, HasFinalizer: true}, Runs: []Run{r}}
}

// A claim was not expanded, and a change of the policy was not followed, for as long as its success
// was not to be written.
func TestNothingElseWaitsUntilASuccessIsShown(t *testing.T) {
	v := inABatch()
	if w, waits := Decide(v).(Wait); !waits || !w.Until.Equal(now.Add(runs.ShownAfter)) {
		t.Errorf("%#v, want to wait until the success is shown", Decide(v))
	}
	v.Volume.PolicyDelete = false
	if _, follows := removal(Decide(v)); !follows {
		t.Errorf("%#v, want the change of policy followed at once", Decide(v))
	}
	v = inABatch()
	v.Now = now.Add(runs.ShownAfter)
	if p, publishes := Decide(v).(PublishResult); !publishes || !p.Success {
		t.Errorf("%#v, want the success shown", Decide(v))
	}
}

// A later run that never started is the one whose result is shown. The Job before it, which is being
// deleted with its record, was once held for ever, and no claim was expanded meanwhile.
func TestNoDeletedJobWaitsForAResultThatIsNeverShown(t *testing.T) {
	first, later := recorded(run(contract.Provision, 1), contract.TryAgain, 0), recorded(run(contract.Provision, 2), contract.NotStarted, 0)
	first.Held, first.Terminating = true, true
	later.Held, later.Published = false, true
	v := View{Now: now, Claim: ClaimBound, Volume: Volume{State: Fits, UID: pvUID, PolicyDelete: true, HasFinalizer: true}, Runs: []Run{first, later}}
	if release, releases := Decide(v).(ReleaseRecord); !releases || release.Run.Name != first.Name {
		t.Errorf("%#v, want the record released", Decide(v))
	}
	v.Runs = v.Runs[:1]
	if _, releases := Decide(v).(ReleaseRecord); releases {
		t.Error("the record is released before its result is shown")
	}
}
