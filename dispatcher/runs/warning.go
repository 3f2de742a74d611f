package runs

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Warning is the newest warning event about a Job or its pod, if there is one.
type Warning struct{ Reason, Note string }

// NewestWarning returns the event that was last seen, or nil.
func NewestWarning(events []corev1.Event) *Warning {
	var last *corev1.Event
	for i := range events {
		if e := &events[i]; last == nil || lastSeen(e).After(lastSeen(last)) {
			last = e
		}
	}
	if last == nil {
		return nil
	}
	return &Warning{Reason: contract.Shorten(last.Reason, mostOfWarning), Note: contract.Shorten(last.Message, mostOfWarning)}
}

// mostOfWarning is how much is kept of a warning's reason, and of its message, in bytes: more than
// an event of the dispatcher has room for. The core API limits neither.
const mostOfWarning = 2 << 10

// lastSeen returns when an event was last seen. Which field says so depends on the API by which it
// was written.
func lastSeen(e *corev1.Event) time.Time {
	seen := e.LastTimestamp.Time
	if e.EventTime.After(seen) {
		seen = e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(seen) {
		seen = e.Series.LastObservedTime.Time
	}
	return seen
}
