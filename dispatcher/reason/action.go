package reason

import (
	"fmt"
	"hash/fnv"
)

// room is what the API server's 128 bytes for an event's action leave for its reason, which may
// come from Kubernetes.
const room = 100

// ActionOf returns the action of an event. The recorder counts events as repeats by a key that has
// the action and not the note. With the same action for each note, an event would go on reporting
// the first cause for minutes when there is another.
func ActionOf(why, note string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(note)) // it never fails
	return fmt.Sprintf("%s-%08x", why[:min(len(why), room)], sum.Sum32())
}

// WaitsForAdministrator reports whether only an administrator can end a problem. Its event is
// repeated.
func WaitsForAdministrator(why string) bool {
	switch why {
	case VolumeInDoubt, RevisionMissing, RevisionDamaged, RecordTooNew, DeleteNotSupported, NodeGone, RunNotConfirmed:
		return true
	default:
		return false
	}
}
