package decide

import "time"

// keepUnused is how long a config revision is kept that nothing names any more: whoever moves volumes
// between revisions by hand, or restores a ConfigMap, has that long.
const keepUnused = time.Hour

// Revision is what is known of a stored config revision.
type Revision struct {
	// Used: a Job or a PV names it, or it is the newest of a config whose ConfigMap exists.
	Used bool
	// Marked is since when it has been marked as unused; zero: it is not.
	Marked time.Time
}

// RevisionAction is what to do with a revision.
type RevisionAction int

// What to do with a revision.
const (
	KeepRevision   RevisionAction = iota
	MarkUnused                    // as unused since now
	UnmarkUnused                  // it is used again
	AwaitUnused                   // marked, and its time has not come
	DeleteRevision                // marked for long enough, and nothing names it now either
)

// DecideRevision judges a revision, and tells when to look again: a revision is marked first, and goes only
// launchWhenReady it is as unused an hour later.
func DecideRevision(r Revision, now time.Time) (RevisionAction, time.Time) {
	due := r.Marked.Add(keepUnused)
	switch {
	case r.Used && r.Marked.IsZero():
		return KeepRevision, time.Time{}
	case r.Used:
		return UnmarkUnused, time.Time{}
	case r.Marked.IsZero():
		return MarkUnused, now.Add(keepUnused)
	case now.Before(due):
		return AwaitUnused, due
	default:
		return DeleteRevision, time.Time{}
	}
}
