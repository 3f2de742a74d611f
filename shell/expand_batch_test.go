package shell

import (
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// The largest batch of expands whose script says by flex grown how large each volume is has a result
// for each.
func TestTheLargestBatchOfExpandsHasAResultForEach(t *testing.T) {
	most := contract.MaxBatchOf(contract.Expand)
	p := newPod(t, contract.Expand, most)
	code := exitOf(t, p.each(16, `flex grown 10737418240`).Run())
	if got := p.results(); code != contract.ExitDone || len(got) != most {
		t.Errorf("exit %d: %d results in %d bytes: %s", code, len(got), len(p.message()), &p.says)
	}
}
