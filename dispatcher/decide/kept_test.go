package decide

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// A volume that is kept again when its delete waits at the gate is not deleted: the gate asks what a
// launch does. A delete that is done is no longer waited for.
func TestAGatedDeleteOfAKeptVolumeIsCancelled(t *testing.T) {
	d := gated(run(contract.Delete, 1))
	d.Volume, d.Hash, d.Node, d.NothingBefore, d.GatedSince = pvUID, "", "", false, now
	v := attachedReclaim(time.Hour)
	v.Volume.Attached, v.Runs = nil, []Run{d}
	if _, confirms := Decide(v).(Confirm); !confirms {
		t.Fatalf("due: got %#v", Decide(v))
	}
	v.Volume.KeptUntil = now.Add(time.Minute)
	if _, cancels := Decide(v).(Cancel); !cancels {
		t.Errorf("kept: got %#v", Decide(v))
	}
	v.Runs = nil
	if got, waits := Decide(v).(Wait); !waits || !got.Until.Equal(v.Volume.KeptUntil) {
		t.Errorf("no run: got %#v", Decide(v))
	}
}

// A PV that was given to another claim while its delete waited, and is then deleted by hand, is of a
// volume that no run has begun to delete.
func TestADeleteThatNeverStartedSaysNothingOfAPVThatWasHandedOn(t *testing.T) {
	v := attachedReclaim(time.Hour)
	v.Volume.Attached, v.Volume.Use, v.Volume.Terminating, v.Volume.Why = nil, Unbound, true, "its claimRef has no UID"
	decided := func(verdicts ...contract.Verdict) Action {
		v.Runs = nil
		for i, verdict := range verdicts {
			d := recorded(run(contract.Delete, i+1), verdict, time.Hour)
			d.Volume, d.Held = pvUID, false
			v.Runs = append(v.Runs, d)
		}
		return Decide(v)
	}
	if got, reports := decided(contract.NotStarted).(ReportProblem); !reports || got.Problem.Reason != reason.VolumeInDoubt {
		t.Errorf("it never started: got %#v", got)
	}
	if got, launches := decided(contract.TryAgain, contract.NotStarted).(Launch); !launches {
		t.Errorf("an earlier one may have begun: got %#v", got)
	}
}
