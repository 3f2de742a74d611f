package act

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
)

// cancelIfStripped deletes a Job that was just created if it lacks something that was sent, and
// returns that as an error. Nothing of the claim's may be made without a record of it. Nothing has
// run yet, and perhaps no watch will show the Job, so its finalizer is removed first.
func (a *Actor) cancelIfStripped(ctx context.Context, sent, stored *batchv1.Job) error {
	err := patch.UnlessMissing(jobs.Missing(sent, stored))
	if err == nil {
		return nil
	}
	_, released := patch.Strategic(ctx, a.Client.BatchV1().Jobs(stored.Namespace), stored, patch.DropFinalizer(jobs.FinalizerRecord))
	if apierrors.IsNotFound(released) {
		released = nil
	}
	return errors.Join(fmt.Errorf("%w; the Job is deleted before it starts", err), released, a.Cancel(ctx, stored))
}
