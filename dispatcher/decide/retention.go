package decide

import (
	"time"
)

// keepUnused is how long a config revision is kept that nothing names any more. An administrator
// who moves volumes between revisions by hand, or restores a ConfigMap, has that much time.
const keepUnused = time.Hour

// Revision is what is known of a stored config revision.
type Revision struct {
	// Used is set if a Job or a PV names the revision, or if it is the newest of its class and of a
	// ConfigMap that exists.
	Used bool
	// Marked is when the revision was marked as unused, zero if it is not marked.
	Marked time.Time
	// Outdated is set if its note of the trash is not what the ConfigMaps of its class say.
	Outdated bool
}

// RevisionAction is what to do with a revision.
type RevisionAction int

// What to do with a revision.
const (
	KeepUnchanged RevisionAction = iota
	MarkUnused                   // as unused since now
	UnmarkUnused                 // it is used again
	AwaitUnused                  // marked, but not for long enough
	DeleteUnused                 // marked for long enough, and still unused
	NoteTrash                    // what the ConfigMaps of its class say of the trash
)

// DecideRevision returns what to do with a revision, and when to recheck it. A revision is marked
// first, and deleted only if it is still unused an hour later.
func DecideRevision(r Revision, now time.Time) (RevisionAction, time.Time) {
	due := r.Marked.Add(keepUnused)
	switch {
	case r.Used && r.Marked.IsZero() && r.Outdated:
		return NoteTrash, time.Time{}
	case r.Used && r.Marked.IsZero():
		return KeepUnchanged, time.Time{}
	case r.Used:
		return UnmarkUnused, time.Time{}
	case r.Marked.IsZero():
		return MarkUnused, now.Add(keepUnused)
	case now.Before(due):
		return AwaitUnused, due
	default:
		return DeleteUnused, time.Time{}
	}
}
