package act

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
)

// cacheLag is how long the caches may be behind what another leader has just written.
const cacheLag = 10 * time.Second

// storeRevision stores the config of a pending claim as its newest revision. The name is a hash of
// the content. So if the revision exists, only its number is raised and its mark as unused removed.
// One that exists and is still not in the cache a while later lacks the label by which it is
// watched.
func (a *Actor) storeRevision(ctx context.Context, o *observe.Observation) (Result, error) {
	src := o.Provision.Config.Source
	if stored := o.StoredRevision; stored != nil {
		if stored.Annotations[config.AnnUnusedSince] == "" && stored.Revision == o.NextRevision-1 {
			return Result{}, nil // the cache caught up while the claim was observed; its event enqueues the claim
		}
		change := patch.Annotate(map[string]any{config.AnnUnusedSince: nil})
		change["revision"] = o.NextRevision
		err := a.noted(patch.Merge(ctx, a.Client.AppsV1().ControllerRevisions(stored.Namespace), stored, change))
		_, err = patch.EffectOf(err, "set the number of the config revision %s to %d", src.Revision(), o.NextRevision)
		return Result{}, err
	}
	_, err := a.Client.AppsV1().ControllerRevisions(src.Namespace).Create(ctx, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: src.RevisionName(), Namespace: src.Namespace,
			Labels: map[string]string{
				config.LabelManagedBy: config.ManagedBy,
				config.LabelClass:     config.ClassLabel(src.Class),
			},
		},
		Data:     runtime.RawExtension{Raw: src.Encode()},
		Revision: o.NextRevision,
	}, metav1.CreateOptions{FieldManager: patch.FieldManager})
	switch {
	case apierrors.IsAlreadyExists(err):
		return learned(observe.Hint{UnseenRevision: src.Revision(), UnseenFrom: a.Clock.Now().Add(cacheLag)}), nil
	case err != nil:
		return Result{}, fmt.Errorf("store the config revision %s: %w", src.Revision(), err)
	default:
		return Result{}, nil
	}
}

// DoRevision carries out what was decided for one stored config revision. until is when to decide
// again.
func (a *Actor) DoRevision(ctx context.Context, r *observe.Revision, action decide.RevisionAction, until time.Time) (Result, error) {
	switch action {
	case decide.MarkUnused:
		return a.requeueAt(until), a.markUnused(ctx, r.Stored, a.Clock.Now().UTC().Format(time.RFC3339))
	case decide.UnmarkUnused:
		return Result{}, a.markUnused(ctx, r.Stored, nil)
	case decide.DeleteUnused:
		return Result{}, a.deleteRevision(ctx, r.Stored)
	case decide.NoteTrash:
		return Result{}, a.noteTrash(ctx, r)
	case decide.KeepUnchanged, decide.AwaitUnused:
		return a.requeueAt(until), nil
	default:
		return Result{}, fmt.Errorf("the action %d cannot be carried out on a config revision", action)
	}
}

// markUnused marks a revision with a time, or removes the mark if that is nil. A revision that has
// changed since it was observed is left as it is, and the watch enqueues it.
func (a *Actor) markUnused(ctx context.Context, stored *appsv1.ControllerRevision, since any) error {
	err := a.noted(patch.Merge(ctx, a.Client.AppsV1().ControllerRevisions(stored.Namespace), stored, patch.Annotate(map[string]any{config.AnnUnusedSince: since})))
	_, err = patch.EffectOf(err, "annotate the config revision %s/%s as unused", stored.Namespace, stored.Name)
	return err
}

// noteTrash notes on a revision what the ConfigMaps of its class say of the trash.
func (a *Actor) noteTrash(ctx context.Context, r *observe.Revision) error {
	note, err := r.Trash.Note()
	if err != nil {
		return fmt.Errorf("encode what the class of the config revision %s keeps: %w", r.Name, err)
	}
	revisions := a.Client.AppsV1().ControllerRevisions(r.Stored.Namespace)
	change := patch.Annotate(map[string]string{config.AnnTrash: note})
	err = a.noted(patch.Merge(ctx, revisions, r.Stored, change))
	_, err = patch.EffectOf(err, "note on the config revision %s what its class keeps", r.Name)
	return err
}

// deleteRevision deletes a revision, unless it has changed since it was observed: a launch that
// needs a marked revision removes the mark first.
func (a *Actor) deleteRevision(ctx context.Context, stored *appsv1.ControllerRevision) error {
	err := a.Client.AppsV1().ControllerRevisions(stored.Namespace).Delete(ctx, stored.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &stored.UID, ResourceVersion: &stored.ResourceVersion},
	})
	_, err = patch.EffectOf(err, "delete the unused config revision %s/%s", stored.Namespace, stored.Name)
	return err
}
