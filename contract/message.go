package contract

import "strings"

// ClaimPrefix begins a line of the termination message that is meant for the claim's user. Every
// other line goes to the Job's event only, in the dispatcher's namespace: a "set -x" must not put a
// credential before a user's eyes.
const ClaimPrefix = "claim: "

// MaxMessage is how much of the termination log the kubelet keeps, in bytes.
const MaxMessage = 4096

// MaxBatch is the largest batch-size: of more requests the results would not fit into a termination message.
const MaxBatch = MaxMessage / 64

// MaxFiles is how large the files of a batch may be together, in bytes: they travel in the pod's annotations,
// which may be 256 KiB large.
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
