package decide

import (
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Pauses after a run, by its verdict.
const (
	firstPause     = time.Second
	lastPause      = 5 * time.Minute
	uncountedPause = 10 * time.Second // the run was disrupted from outside

	// longestPause is the longest pause: the config or the claim must change. It is retried in case the storage did.
	longestPause = 10 * time.Minute
	// fullPause is for how long a node that had no room is not tried again. Space outside the cluster must change.
	fullPause = 5 * time.Minute
)

// pauseAfter returns how long to wait after a run that ended with a verdict, if nothing has changed since. failures is how
// many runs of its verb have failed, number is how many there were.
func pauseAfter(verdict contract.Verdict, failures, number int) time.Duration {
	switch verdict {
	case contract.BadConfig, contract.BadRequest:
		return longestPause
	case contract.NoCapacity, contract.NoCredentials:
		return fullPause
	case contract.Disrupted, contract.Unknown:
		return uncountedPause
	case contract.Unlisted:
		return firstPause // the next run goes alone and finds out
	case contract.NotStarted:
		return exponential(max(failures, number)) // it does not count as an attempt: one that is cancelled each time would be launched every second
	case contract.Done, contract.TryAgain:
		return exponential(failures)
	default:
		return exponential(failures)
	}
}

// exponential returns a pause that doubles with each attempt, from one second to five minutes.
func exponential(attempt int) time.Duration {
	const doublings = 9 // 512 s is past the last
	return min(firstPause<<min(max(attempt-1, 0), doublings), lastPause)
}
