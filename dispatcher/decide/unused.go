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

// Keeping is what to do with a revision.
type Keeping int

// What to do with a revision.
const (
	Spare   Keeping = iota
	Mark            // as unused since now
	Unmark          // it is used again
	Await           // marked, and its time has not come
	Collect         // marked for long enough, and nothing names it now either
)

// Collected judges a revision, and tells when to look again: a revision is marked first, and goes only
// when it is as unused an hour later.
func Collected(r Revision, now time.Time) (Keeping, time.Time) {
	due := r.Marked.Add(keepUnused)
	switch {
	case r.Used && r.Marked.IsZero():
		return Spare, time.Time{}
	case r.Used:
		return Unmark, time.Time{}
	case r.Marked.IsZero():
		return Mark, now.Add(keepUnused)
	case now.Before(due):
		return Await, due
	default:
		return Collect, time.Time{}
	}
}
