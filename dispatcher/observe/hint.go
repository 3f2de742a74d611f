package observe

import (
	"cmp"
	"slices"
	"time"
)

// Hint is what the loop knows of a UID and no object shows: what an action has learned from a
// refused write. It is valid for a moment, and losing it costs one more refused write.
type Hint struct {
	// Unpublishable names the run whose result the API server does not allow the dispatcher to
	// write on the claim.
	Unpublishable string
	// Success is what that result says.
	Success bool
	// NoPVOf names the run from whose description no PV can be created. WhyNoPV says why.
	NoPVOf, WhyNoPV string
	// Cancelled counts the runs that were cancelled, one after the other, when they were to be
	// confirmed, NotBefore is when the next may be launched.
	Cancelled int
	NotBefore time.Time
	// Returned counts the returns of the claim from excluded nodes, NoReturnBefore is when the next
	// may follow.
	Returned       int
	NoReturnBefore time.Time
	// UnseenRevision is the config revision, "namespace/name", that could not be stored since it
	// exists, UnseenFrom is when the caches show it at the latest if it is watched.
	UnseenRevision string
	UnseenFrom     time.Time
	// RecordReleasedOf is the UID of the PV for which this dispatcher has released the record of a
	// provision.
	RecordReleasedOf string
	// Refused names the writes that were refused, or that the object did not show afterwards, by
	// decide.WriteOf.
	Refused []string
}

// Merge returns what two hints say together, where they differ what the later one says.
func (h Hint) Merge(later Hint) Hint {
	if later.Unpublishable != "" {
		h.Unpublishable, h.Success = later.Unpublishable, later.Success
	}
	if later.NoPVOf != "" {
		h.NoPVOf, h.WhyNoPV = later.NoPVOf, later.WhyNoPV
	}
	if later.UnseenRevision != "" {
		h.UnseenRevision, h.UnseenFrom = later.UnseenRevision, later.UnseenFrom
	}
	if later.Cancelled > 0 {
		h.Cancelled, h.NotBefore = later.Cancelled, later.NotBefore
	}
	if later.Returned > 0 {
		h.Returned, h.NoReturnBefore = later.Returned, later.NoReturnBefore
	}
	h.RecordReleasedOf = cmp.Or(later.RecordReleasedOf, h.RecordReleasedOf)
	h.Refused = append(slices.Clip(h.Refused), later.Refused...)
	return h
}
