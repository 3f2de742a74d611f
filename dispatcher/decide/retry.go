package decide

import (
	"fmt"
	"time"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/contract"
)

// How long to wait after a run, by its verdict.
const (
	firstBackoff  = time.Second
	lastBackoff   = 5 * time.Minute
	refusedPause  = 10 * time.Minute // the config or the claim must change; look again in case the storage did
	capacityPause = 5 * time.Minute  // somebody else's space or credentials must change
	uncounted     = 10 * time.Second // nobody's fault
)

// due is when a run may follow: at once when what was refused has changed.
func due(r *Run, t Target) time.Time {
	if t.Problem == nil && changed(r, t) {
		return r.Outcome.Finished
	}
	return r.Outcome.Finished.Add(pause(r))
}

func pause(r *Run) time.Duration {
	switch r.Outcome.Verdict {
	case contract.BadConfig, contract.BadRequest:
		return refusedPause
	case contract.NoCapacity, contract.NoCredentials:
		return capacityPause
	case contract.Disrupted, contract.Unknown:
		return uncounted
	case contract.Done, contract.TryAgain, contract.NotStarted:
		return backoff(r.Attempt)
	default:
		return backoff(r.Attempt)
	}
}

// backoff doubles from one second to five minutes.
func backoff(attempt int) time.Duration {
	const doublings = 9 // 512 s is past the last
	return min(firstBackoff<<min(max(attempt-1, 0), doublings), lastBackoff)
}

// attempt is the count of the run that follows; what others did to a run does not count.
func attempt(last *Run) int {
	switch {
	case last == nil:
		return 1
	case !last.Outcome.Verdict.Counted():
		return max(last.Attempt, 1)
	default:
		return last.Attempt + 1
	}
}

// moved: the target is another config, or another node, than the run's.
func moved(r *Run, t Target) bool { return r.Revision != t.Revision || r.Node != t.Node }

// changed: what the run was asked to do is not what would be asked now. A delete asks the same always.
func changed(r *Run, t Target) bool {
	return r.Verb == contract.Provision && (moved(r, t) || r.Hash != t.Hash)
}

func exhausted(r *Run, t Target) bool {
	return t.MaxAttempts > 0 && r.Outcome.Verdict.Counted() && r.Attempt >= t.MaxAttempts && !changed(r, t)
}

func stalled(r *Run) Problem {
	return Problem{
		Reason: "Stalled",
		Note: fmt.Sprintf("no further attempt after %d, the config's max-attempts; "+
			"it is tried again when the claim's request or the config changes", r.Attempt),
	}
}
