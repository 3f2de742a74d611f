package decide

import "github.com/flex-provisioner/flex-provisioner/contract"

// RunState is how far a run is. Its states are in the order in which a run goes through them.
type RunState int

// The states of a run.
const (
	RunGated    RunState = iota // its pod waits at its gate until the dispatcher confirms the run
	RunStarting                 // no container of it has started, so that it can have done nothing yet
	RunRunning                  // a container of it has started, and no end of it is known
	RunEnded                    // it has ended, and its outcome is not on record
	RunRecorded                 // its outcome is on record, and the record is held
	RunReleased                 // the record is needed no more, and the Job expires
)

var runStates = [...]string{"gated", "starting", "running", "ended", "recorded", "released"}

func (s RunState) String() string { return runStates[s] }

// State returns how far the run is.
func (r *Run) State() RunState {
	switch {
	case r.Gated:
		return RunGated
	case r.Unfinished && r.Unstarted:
		return RunStarting
	case r.Unfinished:
		return RunRunning
	case r.Recorded == nil:
		return RunEnded
	case r.Held:
		return RunRecorded
	default:
		return RunReleased
	}
}

// mayHaveStarted reports whether a container of the run may have started.
func (r *Run) mayHaveStarted() bool {
	switch r.State() {
	case RunGated, RunStarting:
		return false
	case RunRunning:
		return true
	default:
		return r.Outcome.Verdict != contract.NotStarted
	}
}
