package decide

import (
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// The Job that deleted the first provision's PV is kept longer than the Job of that provision.
func TestDeleteIsNotTheUndoOfALaterProvision(t *testing.T) {
	done := runs.Outcome{Verdict: contract.Done}
	v := View{Claim: ClaimPending, Provision: Target{HasSlot: true, RevisionStored: true, Supported: true}, Delete: Target{HasSlot: true, RevisionStored: true, Supported: true}}
	v.Runs = []Run{{
		Name: "delete-uid-1", Outcome: done,
		Record: runs.Record{Verb: contract.Delete, Number: 1, After: 1, Volume: "pv-uid", Recorded: &done},
	}}
	a, launches := Decide(v).(Launch)
	if !launches || a.Verb != contract.Provision || a.Number != 2 || !a.NothingBefore {
		t.Fatalf("%#v, want the second provision", a)
	}
	failed := runs.Outcome{Verdict: contract.TryAgain}
	v.Runs = append(v.Runs, Run{
		Name: "provision-uid-2", Outcome: failed, Published: true,
		Record: runs.Record{Verb: contract.Provision, Number: a.Number, Attempt: 1, NothingBefore: a.NothingBefore, Recorded: &failed, Held: true},
	})
	v.Claim = ClaimGone
	if a, launches := Decide(v).(Launch); !launches || !a.Undo || a.After != 2 {
		t.Errorf("%#v, want the undo of the second provision", Decide(v))
	}
}
