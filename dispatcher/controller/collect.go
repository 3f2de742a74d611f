package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// nextRevision looks at one revision that may have come out of use.
func (c *Controller) nextRevision(ctx context.Context) bool {
	name, quit := c.revisions.Get()
	if quit {
		return false
	}
	defer c.revisions.Done(name)
	wait, err := c.collect(ctx, name)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			klog.FromContext(ctx).Error(err, "cannot go on with a config revision for now", "revision", name)
		}
		c.revisions.AddRateLimited(name)
		return true
	}
	c.revisions.Forget(name)
	if wait > 0 {
		c.revisions.AddAfter(name, wait)
	}
	return true
}

// collect takes one step for one revision, "namespace/name". The caches tell when to look; before a
// revision is marked or goes, the API server is asked as well: of two leaders whose caches differ, one
// would put the mark on as fast as the other takes it off. It returns when to look again, as sync does.
func (c *Controller) collect(ctx context.Context, name string) (time.Duration, error) {
	stored := c.revision(name)
	if stored == nil {
		return 0, nil
	}
	seen := decide.Revision{Used: c.used(name, stored), Marked: markedSince(stored)}
	step, at := decide.DecideRevision(seen, c.clock.Now())
	if step == decide.MarkUnused || step == decide.DeleteRevision {
		named, err := c.named(ctx, name)
		if err != nil {
			return 0, err
		}
		seen.Used = named
		step, at = decide.DecideRevision(seen, c.clock.Now())
	}
	switch step {
	case decide.MarkUnused:
		return c.until(at), c.markUnused(ctx, stored, c.clock.Now().UTC().Format(time.RFC3339))
	case decide.UnmarkUnused:
		return 0, c.markUnused(ctx, stored, nil)
	case decide.DeleteRevision:
		return 0, c.discard(ctx, stored)
	case decide.KeepRevision, decide.AwaitUnused:
		return c.until(at), nil
	default:
		return 0, fmt.Errorf("no hand for the step %d", step)
	}
}

// markedSince is when a revision was marked. A mark that cannot be read is none.
func markedSince(stored *appsv1.ControllerRevision) time.Time {
	at, err := time.Parse(time.RFC3339, stored.Annotations[config.AnnUnusedSince])
	if err != nil {
		return time.Time{}
	}
	return at
}

// used tells whether anything in the caches needs a revision. One that cannot be read is left alone:
// nobody knows whose it is.
func (c *Controller) used(name string, stored *appsv1.ControllerRevision) bool {
	if slices.Contains(c.caches.volumes.ListIndexFuncValues(byRevision), name) {
		return true
	}
	for _, s := range c.caches.spaces {
		if slices.Contains(s.jobs.ListIndexFuncValues(byRevision), name) {
			return true
		}
	}
	src, err := config.DecodeSource(stored.Data.Raw)
	if err != nil {
		return true
	}
	_, exists, _ := c.caches.spaces[stored.Namespace].configs.GetByKey(stored.Namespace + "/" + src.Name)
	return exists && stored.Revision == newestNumber(c.siblings(src))
}

// named asks the API server whether a Job or a PV names a revision.
func (c *Controller) named(ctx context.Context, name string) (bool, error) {
	for _, ns := range c.caches.namespaces() {
		list, err := c.client.BatchV1().Jobs(ns).List(ctx, metav1.ListOptions{LabelSelector: config.LabelManagedBy + "=" + config.ManagedBy})
		if err != nil {
			return false, fmt.Errorf("list the Jobs in %s: %w", ns, err)
		}
		for i := range list.Items {
			if list.Items[i].Annotations[contract.AnnRevision] == name {
				return true, nil
			}
		}
	}
	list, err := c.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("list the PersistentVolumes: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Annotations[contract.AnnRevision] == name {
			return true, nil
		}
	}
	return false, nil
}

// markUnused marks a revision with a time, or takes the mark off with nil. One that has changed since
// is left to the next look, which the watch brings.
func (c *Controller) markUnused(ctx context.Context, stored *appsv1.ControllerRevision, since any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": stored.UID, "resourceVersion": stored.ResourceVersion,
		"annotations": map[string]any{config.AnnUnusedSince: since},
	}})
	if err != nil {
		return fmt.Errorf("encode the mark of the config revision %s: %w", stored.Name, err)
	}
	_, err = c.client.AppsV1().ControllerRevisions(stored.Namespace).
		Patch(ctx, stored.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("mark the config revision %s/%s: %w", stored.Namespace, stored.Name, err)
	}
	return nil
}

// discard deletes a revision, unless it has changed since it was looked at: whoever needs a marked one
// takes the mark off first.
func (c *Controller) discard(ctx context.Context, stored *appsv1.ControllerRevision) error {
	err := c.client.AppsV1().ControllerRevisions(stored.Namespace).Delete(ctx, stored.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &stored.UID, ResourceVersion: &stored.ResourceVersion},
	})
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the unused config revision %s/%s: %w", stored.Namespace, stored.Name, err)
	}
	return nil
}

// wakeRevision looks at a revision anew: what named it may have gone, or may name it now.
func (c *Controller) wakeRevision(name string) {
	if strings.Contains(name, "/") {
		c.revisions.Add(name)
	}
}

// wakeRevisions looks at the revisions of a config: its ConfigMap may have come or gone, or another may
// be the newest now.
func (c *Controller) wakeRevisions(namespace, configName string) {
	for _, stored := range c.siblings(config.Source{Namespace: namespace, Name: configName}) {
		c.revisions.Add(stored.Namespace + "/" + stored.Name)
	}
}
