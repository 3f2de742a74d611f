package observe

import (
	"context"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// siblings returns the stored revisions of the same config.
func (b *Observer) siblings(src config.Source) []*appsv1.ControllerRevision {
	return b.Caches.RevisionsOf(src.Namespace, config.NameOfRevision(src.RevisionName()))
}

// isCurrent reports whether a source is stored as its config's newest revision, which is the fallback if the next
// edit is faulty. One that is marked as unused may be deleted at any moment, so it does not count as stored until the
// mark has been removed.
func (b *Observer) isCurrent(src config.Source) bool {
	stored := b.Caches.Revision(src.Revision())
	return stored != nil && stored.Annotations[config.AnnUnusedSince] == "" && stored.Revision == newestNumber(b.siblings(src))
}

// newestNumber returns the highest number of some revisions.
func newestNumber(revisions []*appsv1.ControllerRevision) int64 {
	var last int64
	for _, r := range revisions {
		last = max(last, r.Revision)
	}
	return last
}

// lastGood returns the newest stored revision of a config whose ConfigMap is faulty now. It skips the revisions of a
// class that was recreated with other parameters, since that is another request.
func (b *Observer) lastGood(src config.Source) (config.Config, bool) {
	var good config.Config
	last, found := int64(0), false
	for _, r := range b.siblings(src) {
		old, err := config.StoredSource(r)
		if err != nil || r.Revision <= last || old.Class != src.Class || old.Reclaim != src.Reclaim || !maps.Equal(old.Parameters, src.Parameters) {
			continue
		}
		if cfg, p := b.parse(old); p == nil {
			good, last, found = cfg, r.Revision, true
		}
	}
	return good, found
}

// unseenRevision returns the problem that a revision exists and is not watched.
func unseenRevision(name string) *decide.Problem {
	p := problem(reason.RevisionDamaged, "the ControllerRevision %s exists, but without its label %s=%s: add the label, or delete that ControllerRevision",
		name, config.LabelManagedBy, config.ManagedBy)
	p.RetryAfter = time.Minute
	return p
}

// Revision is what was found of one stored config revision, "namespace/name".
type Revision struct {
	Name   string
	Stored *appsv1.ControllerRevision
	decide.Revision
}

// ObserveRevision collects what decide needs to know of a stored config revision, or nil if it does not exist. Before
// a revision is marked or deleted, the API server is asked as well (live): if the caches of two leaders differed, one
// would add the mark as fast as the other removed it.
func (b *Observer) ObserveRevision(ctx context.Context, name string, live bool) (*Revision, error) {
	stored := b.Caches.Revision(name)
	if stored == nil {
		return nil, nil //nolint:nilnil // it was deleted, which is no error
	}
	r := &Revision{Name: name, Stored: stored, Revision: decide.Revision{Used: b.isUsed(name, stored), Marked: markedSince(stored)}}
	if live {
		var err error
		if r.Used, err = b.Caches.IsRevisionNamedLive(ctx, name); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// isUsed reports whether anything in the caches needs a revision. One that cannot be parsed is kept, since its config
// is unknown.
func (b *Observer) isUsed(name string, stored *appsv1.ControllerRevision) bool {
	if b.Caches.IsRevisionNamed(name) {
		return true
	}
	src, err := config.StoredSource(stored)
	if err != nil {
		return true
	}
	return b.Caches.ConfigNamed(stored.Namespace, src.Name) != nil && stored.Revision == newestNumber(b.siblings(src))
}

// markedSince returns when a revision was marked, zero if it is not marked or the mark cannot be parsed.
func markedSince(stored *appsv1.ControllerRevision) time.Time {
	at, err := time.Parse(time.RFC3339, stored.Annotations[config.AnnUnusedSince])
	if err != nil {
		return time.Time{}
	}
	return at
}
