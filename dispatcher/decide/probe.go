package decide

import "fmt"

// Of the Jobs that cannot start for the same reason, with the same config revision and on the same nodes, the oldest is
// kept: the probe. The others are cancelled. Their claims wait behind the probe, and so does every claim whose run
// would start with the same. They are launched when the probe has started, or has ended.

// Probe is a Job that cannot start.
type Probe struct {
	Job string
	// Reason and Note say why, as in runs.Stuck.
	Reason, Note string
}

// isSurplus reports whether another Job finds out when a stuck run would start.
func isSurplus(r Run) bool { return r.Stuck.Unstarted && r.Probe != "" }

// behindProbe returns why a claim waits behind a Job that cannot start, or nil if there is none.
func behindProbe(t Target) *Problem {
	if t.Probe == nil {
		return nil
	}
	return &Problem{Reason: t.Probe.Reason, Note: fmt.Sprintf(
		"its run waits, since the Job %s, with the same config and nodes, cannot start: %s. It is launched when that Job has started or has ended",
		t.Probe.Job, t.Probe.Note)}
}
