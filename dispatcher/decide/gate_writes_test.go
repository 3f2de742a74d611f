package decide

import (
	"fmt"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// A user who edits a claim makes each write on it fail. Those of other users that share its Job do
// not wait for that: only a Job of its own does.
func TestNoWriteOnAClaimHoldsTheGateOfABatch(t *testing.T) {
	expand := func(stage ResizeStage, hash string) View {
		r := gated(run(contract.Expand, 1))
		r.Revision, r.Hash, r.NothingBefore = "r1", "h1", false
		return View{
			Now: now, Claim: ClaimBound, Volume: Volume{State: Fits, UID: pvUID}, Resize: stage, Runs: []Run{r},
			Expand: Target{Revision: "r1", Hash: hash, RevisionStored: true, Supported: true},
		}
	}
	failed := recorded(run(contract.Provision, 1), contract.TryAgain, time.Hour)
	again := gated(run(contract.Provision, 2))
	again.NothingBefore = false
	target := provisionTargets()[1]
	failed.Revision, failed.Hash, failed.Node = target.Revision, target.Hash, target.Node
	again.Revision, again.Hash, again.Node = target.Revision, target.Hash, target.Node
	for name, test := range map[string]struct {
		v             View
		shared, alone string
	}{
		"an expand":                                       {expand(ResizeInProgress, "h1"), "decide.Confirm", "decide.Confirm"},
		"an expand whose stage is not written":            {expand(ResizeRequested, "h1"), "decide.Cancel", "decide.SetResizeStage"},
		"an expand to another size, which is not written": {expand(ResizeRequested, "h2"), "decide.Cancel", "decide.Cancel"},
		"a provision after a result that is not written": {
			View{Now: now, Claim: ClaimPending, Provision: target, Delete: deleteTargets()[1], Runs: []Run{failed, again}}, "decide.Confirm", "decide.PublishResult",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &test.v.Runs[len(test.v.Runs)-1]
			if got := fmt.Sprintf("%T", Decide(test.v)); got != test.alone {
				t.Errorf("of one claim it is %s, want %s", got, test.alone)
			}
			r.UIDs = []string{"uid", "other"}
			if got := fmt.Sprintf("%T", Decide(test.v)); got != test.shared {
				t.Errorf("of a batch it is %s, want %s", got, test.shared)
			}
		})
	}
}
