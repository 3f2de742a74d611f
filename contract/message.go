package contract

import "strings"

// ClaimPrefix begins a line of the termination message that is meant for the claim's user. Every
// other line goes only to the Job's event, in the config's namespace: a "set -x" must not show a
// credential to a user.
const ClaimPrefix = "claim: "

// MaxMessage is the number of bytes of the termination log that the kubelet keeps.
const MaxMessage = 4096

// MaxBatch is the largest batch-size. The results of more requests would not fit into a termination
// message.
const MaxBatch = MaxMessage / 64

// mostExpands is MaxBatch for expands: each result has the capacity of its volume, in up to 20 digits.
const mostExpands = MaxMessage / 96

// MaxBatchOf returns how many requests of a verb have room for their results in one message.
func MaxBatchOf(verb Verb) int {
	if verb == Expand {
		return mostExpands
	}
	return MaxBatch
}

// MaxFiles is the largest size of the files of a batch together, in bytes. They are stored in the
// pod's annotations, which may be 256 KiB large.
const MaxFiles = 200 << 10

// ForClaim returns the lines of a termination message that are for the claim's user, without their
// prefix, joined by spaces.
func ForClaim(message string) string {
	var lines []string
	for line := range strings.Lines(message) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), ClaimPrefix); ok {
			lines = append(lines, strings.TrimSpace(text))
		}
	}
	return strings.Join(lines, " ")
}
