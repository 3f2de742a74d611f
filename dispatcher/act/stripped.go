package act

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
)

// missingOfJob returns what of a Job was not stored. Without its labels the Job would not be seen, without its
// annotations it would be no record, and without its finalizer it could vanish with what it has made.
func missingOfJob(sent, stored *batchv1.Job) []string {
	return slices.Concat(
		patch.MissingFinalizers(nil, sent.Finalizers, stored.Finalizers),
		patch.MissingKeys("label", ownKeys(sent.Labels), stored.Labels),
		patch.MissingKeys("annotation", ownKeys(sent.Annotations), stored.Annotations),
		patch.MissingKeys("pods' label", ownKeys(sent.Spec.Template.Labels), stored.Spec.Template.Labels),
		patch.MissingKeys("pods' annotation", ownKeys(sent.Spec.Template.Annotations), stored.Spec.Template.Annotations),
	)
}

// ownKeys returns the entries that are the dispatcher's. What a config's pod-template adds may be changed by others.
func ownKeys(all map[string]string) map[string]string {
	own := maps.Clone(all)
	maps.DeleteFunc(own, func(key, _ string) bool {
		return key != config.LabelManagedBy && !strings.Contains(key, contract.Domain)
	})
	return own
}

// cancelIfStripped deletes a Job that was just created if it lacks something that was sent, and returns that as an
// error. Nothing of the claim's may be made without a record of it. Nothing has run yet, and perhaps no watch will show the
// Job, so its finalizer is removed first.
func (a *Actor) cancelIfStripped(ctx context.Context, sent, stored *batchv1.Job) error {
	err := patch.UnlessMissing(missingOfJob(sent, stored))
	if err == nil {
		return nil
	}
	_, released := patch.Strategic(ctx, a.Client.BatchV1().Jobs(stored.Namespace), stored, patch.DropFinalizer(jobs.FinalizerRecord))
	if apierrors.IsNotFound(released) {
		released = nil
	}
	return errors.Join(fmt.Errorf("%w; it is deleted before it has run", err), released, a.cancel(ctx, stored))
}
