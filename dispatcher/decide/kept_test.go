package decide

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
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
