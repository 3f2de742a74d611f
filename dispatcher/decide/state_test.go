package decide

import (
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

func TestARunHasTheStateOfItsFacts(t *testing.T) {
	launched := run(contract.Provision, 1)
	launched.Unfinished, launched.Unstarted = true, true
	running := launched
	running.Unstarted = false
	ended := run(contract.Provision, 1)
	held := recorded(ended, contract.TryAgain, 0)
	released := held
	released.Held = false
	for want, r := range map[RunState]Run{
		RunGated: gated(ended), RunStarting: launched, RunRunning: running,
		RunEnded: ended, RunRecorded: held, RunReleased: released,
	} {
		if got := r.State(); got != want {
			t.Errorf("the state is %s, want %s", got, want)
		}
	}
}
