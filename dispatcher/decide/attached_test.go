package decide

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// attachedReclaim returns a view of a volume that is to be deleted and that a node has attached,
// since some time ago.
func attachedReclaim(ago time.Duration) View {
	return View{Now: now, Claim: ClaimGone, Delete: deleteTargets()[1], Volume: Volume{
		State: Fits, Use: Released, UID: pvUID, PolicyDelete: true, HasFinalizer: true,
		Attached: &Problem{Reason: reason.VolumeInUse, Note: reason.Note{Cause: "the node n1 has it"}, From: now.Add(time.Minute - ago)},
	}}
}

func TestAttachedVolumeIsReportedAfterAMinute(t *testing.T) {
	if got, want := Decide(attachedReclaim(30*time.Second)), now.Add(30*time.Second); got.(Wait).Until != want {
		t.Errorf("got %#v, want a wait until %s", got, want)
	}
	v := attachedReclaim(time.Minute)
	if got, want := Decide(v), (ReportProblem{Problem: *v.Volume.Attached}); got != want {
		t.Errorf("got %#v, want %#v", got, want)
	}
}

// What is gated when the volume is attached waits, and goes on when it is detached; without its
// reason it is cancelled all the same.
func TestGatedDeleteOfAnAttachedVolumeWaits(t *testing.T) {
	d := gated(run(contract.Delete, 1))
	d.Volume, d.Hash, d.Node, d.NothingBefore, d.GatedSince = pvUID, "", "", false, now.Add(-time.Hour)
	v := attachedReclaim(time.Hour)
	v.Runs = []Run{d}
	if got, is := Decide(v).(ReportProblem); !is || got.Problem.Reason != reason.VolumeInUse {
		t.Errorf("got %#v", Decide(v))
	}
	kept := v
	kept.Volume.PolicyDelete = false
	if _, cancels := Decide(kept).(Cancel); !cancels {
		t.Errorf("retained: got %#v", Decide(kept))
	}
	v.Volume.Attached = nil
	if _, confirms := Decide(v).(Confirm); !confirms {
		t.Errorf("detached: got %#v", Decide(v))
	}
}
