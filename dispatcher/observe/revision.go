package observe

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
)

// unseenRevision returns the problem that a revision exists and is not watched. It is one from the
// given time on.
func unseenRevision(name string, from time.Time) *decide.Problem {
	p := decide.Problemf(reason.RevisionDamaged, "the ControllerRevision %s lacks its label %s=%s", name, config.LabelManagedBy, config.ManagedBy).
		Remedyf("add the label, or delete the ControllerRevision")
	p.From, p.RetryAfter = from, time.Minute
	return p
}

// Revision is what was found of one stored config revision, "namespace/name".
type Revision struct {
	Name   string
	Stored *appsv1.ControllerRevision
	decide.Revision
	// Trash is what the ConfigMaps of its class say of the trash.
	Trash config.Trash
}

// ObserveRevision collects what decide needs to know of a stored config revision, or nil if it does
// not exist. Before a revision is marked or deleted, the API server is asked as well (live).
// Otherwise, if the caches of two leaders differ, one adds the mark as fast as the other removes
// it.
func (b *Observer) ObserveRevision(ctx context.Context, name string, live bool) (*Revision, error) {
	stored := b.Caches.Revisions.Named(name)
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
	b.observeNote(r)
	return r, nil
}

// observeNote finds whether a revision notes what the ConfigMaps of its class say of the trash.
// What cannot be read is not noted, and keeps everything until it is corrected.
func (b *Observer) observeNote(r *Revision) {
	judged := b.JudgeStored(r.Stored)
	if judged.Damaged != nil {
		return
	}
	present, fault, ok := b.TrashAtPresent(judged.Source)
	if !ok || fault != nil {
		return
	}
	noted, fault := config.Noted(r.Stored, judged.Source)
	r.Trash, r.Outdated = present, fault != nil || noted != present
}

// isUsed reports whether anything in the caches needs a revision. One that cannot be parsed is
// kept, since its config is unknown.
func (b *Observer) isUsed(name string, stored *appsv1.ControllerRevision) bool {
	if b.Caches.IsRevisionNamed(name) {
		return true
	}
	src, err := config.StoredSource(stored)
	if err != nil {
		return true
	}
	ofSameConfig := slices.DeleteFunc(b.Siblings(src), func(r *appsv1.ControllerRevision) bool {
		return config.NameOfRevision(r.Name) != config.NameOfRevision(stored.Name)
	})
	return b.Caches.Configs.Named(stored.Namespace+"/"+src.Name) != nil && stored.Revision == resolve.NewestNumber(ofSameConfig)
}

// markedSince returns when a revision was marked, zero if it is not marked or the mark cannot be
// parsed.
func markedSince(stored *appsv1.ControllerRevision) time.Time {
	at, err := time.Parse(time.RFC3339, stored.Annotations[config.AnnUnusedSince])
	if err != nil {
		return time.Time{}
	}
	return at
}
