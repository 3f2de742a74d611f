package backoff

import (
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Pauses after a run, by its verdict.
const (
	first     = time.Second
	last      = 5 * time.Minute
	uncounted = 10 * time.Second // the run was disrupted from outside

	// Longest is the longest pause: the config or the claim must change. It is retried in case the storage did.
	Longest = 10 * time.Minute
	// Full is for how long a node that had no room is not tried again. Space outside the cluster must change.
	Full = 5 * time.Minute
)

// After returns how long to wait after a run that ended with a verdict, if nothing has changed since. failures is how
// many runs of its verb have failed, number is how many there were.
func After(verdict contract.Verdict, failures, number int) time.Duration {
	switch verdict {
	case contract.BadConfig, contract.BadRequest:
		return Longest
	case contract.NoCapacity, contract.NoCredentials:
		return Full
	case contract.Disrupted, contract.Unknown:
		return uncounted
	case contract.Unlisted:
		return first // the next run goes alone and finds out
	case contract.NotStarted:
		return Exponential(max(failures, number)) // it does not count as an attempt: one that is cancelled each time would be launched every second
	case contract.Done, contract.TryAgain:
		return Exponential(failures)
	default:
		return Exponential(failures)
	}
}

// Exponential returns a pause that doubles with each attempt, from one second to five minutes.
func Exponential(attempt int) time.Duration {
	const doublings = 9 // 512 s is past the last
	return min(first<<min(max(attempt-1, 0), doublings), last)
}
