package volume

import (
	"errors"
	"strings"
)

// Kind is what a failure means for the one who has to act on it.
type Kind int

// The kinds of failure. The zero value is the careful one: nothing is known, try again.
const (
	// Unavailable: the storage does not answer, or answers that it is broken. What was asked for may
	// have happened all the same.
	Unavailable Kind = iota
	// Gone: what was named is not there.
	Gone
	// Busy: the volume's state does not allow it now.
	Busy
	// Denied: the storage refuses our credentials.
	Denied
	// Full: no capacity, or a quota is used up.
	Full
	// Misconfigured: the storage does not know what the class or the config names.
	Misconfigured
	// Unsuitable: what the claim asks for does not go together.
	Unsuitable
)

// Error is a failure of the storage in terms of the domain.
type Error struct {
	Kind Kind
	// Doing is what was tried, on what: "create volume pvc-1".
	Doing string
	// Said holds the storage's own words, without our credentials and addresses: it may reach the
	// claim's user.
	Said string
	// RequestID is the storage's own number for the request, by which its logs can be searched.
	RequestID string
	// Err is the cause below, for the administrator only.
	Err error
}

// Error is one line for the administrator.
func (e *Error) Error() string {
	parts := []string{e.Doing}
	if e.Said != "" {
		parts = append(parts, e.Said)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	text := strings.Join(parts, ": ")
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// Unwrap gives the cause below.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether err is a failure of this kind.
func Is(err error, kind Kind) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == kind
}

// mayHaveHappened reports whether what failed may have been done all the same.
func mayHaveHappened(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return !ok || e.Kind == Unavailable
}

// IgnoreGone returns nil where err says that what was named does not exist, and err otherwise.
func IgnoreGone(err error) error {
	if Is(err, Gone) {
		return nil
	}
	return err
}
