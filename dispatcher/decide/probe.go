package decide

import (
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/notes"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Of the Jobs that cannot start for the same reason, with the same config revision and on the same nodes, the oldest is
// kept: the probe. The others are cancelled, and their claims wait behind the probe until it has started or has ended. A
// claim that has had no such Job is launched all the same: the reason may lie in the probe's own request, and no other
// claim is to wait for that.

// Probe is a Job that cannot start.
type Probe struct {
	Job string
	// Reason and Note say why, as in runs.Stuck.
	Reason, Note string
}

// behindProbe returns why a run is not launched again that was cancelled before it started, or nil if nothing is in the
// way.
func behindProbe(last *Run, t Target) *Problem {
	if t.Probe == nil || last == nil || hasChanged(last, t) || last.Outcome.Verdict != contract.NotStarted || last.Outcome.Reason != runs.Cancelled {
		return nil
	}
	return &Problem{Reason: t.Probe.Reason, Note: notes.BehindProbe(t.Probe.Job, t.Probe.Note)}
}
