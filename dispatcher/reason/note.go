package reason

import "fmt"

// Note is what an event says. Cause may quote others: a kubelet, a registry, a user. Remedy is of
// the dispatcher's own words, and of names that are quoted, empty if there is none. They are joined
// only where one text is emitted or printed, and no text is searched for a remedy. Whoever is
// quoted as a cause could once name one, and kubectl flex printed it as the dispatcher's
// (TestAKubeletNamesNoRemedy).
type Note struct{ Cause, Remedy string }

// String returns the text of an event.
func (n Note) String() string {
	if n.Remedy == "" {
		return n.Cause
	}
	return n.Cause + ". Remedy: " + n.Remedy
}

// After returns the note with words before its cause.
func (n Note) After(format string, args ...any) Note {
	n.Cause = fmt.Sprintf(format, args...) + n.Cause
	return n
}
