package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// revision returns the stored revision of this "namespace/name", or nil.
func (c *Controller) revision(name string) *appsv1.ControllerRevision {
	ns, _, _ := strings.Cut(name, "/")
	watched, served := c.caches.spaces[ns]
	if !served {
		return nil
	}
	obj, found, err := watched.revisions.GetByKey(name)
	if err != nil || !found {
		return nil
	}
	return obj.(*appsv1.ControllerRevision)
}

// siblings are the stored revisions of the same config.
func (c *Controller) siblings(src config.Source) []*appsv1.ControllerRevision {
	var out []*appsv1.ControllerRevision
	found, _ := c.caches.spaces[src.Namespace].revisions.ByIndex(byConfig, config.NameOfRevision(src.RevisionName()))
	for _, obj := range found {
		out = append(out, obj.(*appsv1.ControllerRevision))
	}
	return out
}

// current tells whether a source is stored, and as its config's newest: the one to fall back to when the
// next edit is faulty. One that is marked as unused may be collected at any moment: it is not stored until
// pin has taken the mark off.
func (c *Controller) current(src config.Source) bool {
	stored := c.revision(src.Revision())
	return stored != nil && stored.Annotations[config.AnnUnusedSince] == "" && stored.Revision == newestNumber(c.siblings(src))
}

func newestNumber(revisions []*appsv1.ControllerRevision) int64 {
	var last int64
	for _, r := range revisions {
		last = max(last, r.Revision)
	}
	return last
}

// lastGood is the newest stored revision of a config whose ConfigMap is faulty now. A class made anew
// with other parameters is another request: no old revision answers it.
func (c *Controller) lastGood(src config.Source) (config.Config, bool) {
	var good config.Config
	last, found := int64(0), false
	for _, r := range c.siblings(src) {
		old, err := config.DecodeSource(r.Data.Raw)
		if err != nil || r.Revision <= last || old.Class != src.Class || old.Reclaim != src.Reclaim || !maps.Equal(old.Parameters, src.Parameters) {
			continue
		}
		if cfg, problem := c.read(old); problem == nil {
			good, last, found = cfg, r.Revision, true
		}
	}
	return good, found
}

// pin stores a revision as its config's newest. Its name is a hash of its content, so that one that
// exists needs only its number raised and its mark as unused taken off.
func (c *Controller) pin(ctx context.Context, src config.Source) error {
	if c.current(src) {
		return nil // the cache caught up since it was looked at; its event wakes the claim
	}
	number := newestNumber(c.siblings(src)) + 1
	if c.revision(src.Revision()) != nil {
		return c.raise(ctx, src, number)
	}
	_, err := c.client.AppsV1().ControllerRevisions(src.Namespace).Create(ctx, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: src.RevisionName(), Namespace: src.Namespace,
			Labels: map[string]string{
				config.LabelManagedBy: config.ManagedBy,
				config.LabelClass:     config.ClassLabel(src.Class),
			},
		},
		Data:     runtime.RawExtension{Raw: src.Encode()},
		Revision: number,
	}, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("store the config revision %s: %w", src.Revision(), err)
	}
	return nil
}

func (c *Controller) raise(ctx context.Context, src config.Source, number int64) error {
	patch, err := json.Marshal(map[string]any{
		"revision": number,
		"metadata": map[string]any{"annotations": map[string]any{config.AnnUnusedSince: nil}},
	})
	if err != nil {
		return fmt.Errorf("encode a revision's number: %w", err)
	}
	_, err = c.client.AppsV1().ControllerRevisions(src.Namespace).
		Patch(ctx, src.RevisionName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("raise the config revision %s to %d: %w", src.Revision(), number, err)
	}
	return nil
}
