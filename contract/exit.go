package contract

// Exit codes of the container "provisioner", after BSD's sysexits. Every other non-zero code means
// the same as ExitTempFail.
const (
	ExitDone        = 0  // done; after a provision the PV exists and carries the claim's UID
	ExitUsage       = 64 // the arguments or the environment are wrong; nothing was made
	ExitBadRequest  = 65 // this claim cannot be served as it is
	ExitUnavailable = 69 // the storage does not answer
	ExitCapacity    = 73 // no capacity, or a quota is used up
	ExitTempFail    = 75 // try again
	ExitNoPerm      = 77 // the credentials were refused; nothing was made
	ExitConfig      = 78 // the configuration is wrong; nothing was made
)

// Verdict is what an exit code means to the dispatcher.
type Verdict string

// The verdicts.
const (
	Done          Verdict = "Done"
	BadConfig     Verdict = "BadConfig"
	BadRequest    Verdict = "BadRequest"
	NoCapacity    Verdict = "NoCapacity"
	NoCredentials Verdict = "CredentialsRefused"
	TryAgain      Verdict = "TryAgain"
	// NotStarted is not an exit code: the container was never started, so it made nothing.
	NotStarted Verdict = "NotStarted"
	// Disrupted and Unknown are not exit codes: the pod was evicted or deleted, or no pod is left
	// to read, or its node does not know how the container ended.
	Disrupted Verdict = "Disrupted"
	Unknown   Verdict = "Unknown"
	// Unlisted is not an exit code: a batch failed, or may have, and reported nothing about this
	// request.
	Unlisted Verdict = "Unlisted"
)

// VerdictOf returns what an exit code means.
func VerdictOf(code int) Verdict {
	switch code {
	case ExitDone:
		return Done
	case ExitUsage, ExitConfig:
		return BadConfig
	case ExitBadRequest:
		return BadRequest
	case ExitCapacity:
		return NoCapacity
	case ExitNoPerm:
		return NoCredentials
	default:
		return TryAgain
	}
}

// MadeNothing reports whether a provision with this verdict is known to have left nothing in the
// storage.
func (v Verdict) MadeNothing() bool {
	return v == BadConfig || v == NoCredentials || v == NotStarted
}

// Counted reports whether a run with this verdict counts as an attempt. A run that was disrupted
// from outside does not, and neither does one that never started.
func (v Verdict) Counted() bool {
	return v != NotStarted && v != Disrupted && v != Unknown && v != Unlisted
}
