package volume

import (
	"errors"
	"strings"
)

// Kind is what a failure means to whoever has to react to it.
type Kind int

// The kinds of failure. The zero value is the safe one: nothing is known, so that the request is
// tried again.
const (
	// Unavailable: the storage does not answer, or answers that it is broken. The request may have
	// been executed.
	Unavailable Kind = iota
	// Gone: the volume does not exist.
	Gone
	// Busy: the volume's status does not allow it now.
	Busy
	// Denied: the storage refuses our credentials.
	Denied
	// Full: no capacity, or a quota is used up.
	Full
	// Misconfigured: the storage does not know what the class or the config names.
	Misconfigured
	// Unsuitable: the claim asks for what cannot be combined.
	Unsuitable
)

// Error is a failure of the storage in terms of the domain.
type Error struct {
	Kind Kind
	// Doing is what was tried: "create volume pvc-1".
	Doing string
	// Said is the storage's own message, without credentials and addresses, since it may be shown
	// to the claim's user.
	Said string
	// RequestID is the storage's ID of the request, which its logs show.
	RequestID string
	// Err is the cause below, for the administrator only.
	Err error
}

// Error returns one line for the administrator.
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

// Unwrap returns the cause below.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether err is a failure of this kind.
func Is(err error, kind Kind) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == kind
}

// mayHaveHappened reports whether the request may have been executed although it failed.
func mayHaveHappened(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return !ok || e.Kind == Unavailable
}

// IgnoreGone returns nil if err says that the volume does not exist, and err otherwise.
func IgnoreGone(err error) error {
	if Is(err, Gone) {
		return nil
	}
	return err
}
