package controller

import (
	"context"
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// reasonRescheduling is told to a claim that goes back to the scheduler.
const reasonRescheduling = "Rescheduling"

// waits tells whether the scheduler chooses a node for the claims of a class.
func waits(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// returned tells how far a claim has come back to the scheduler after a run.
func returned(job *batchv1.Job, claim *corev1.PersistentVolumeClaim) decide.RescheduleStage {
	if claim == nil {
		return decide.RescheduleNone
	}
	switch job.Annotations[jobs.AnnRescheduled(string(claim.UID))] {
	case "":
		return decide.RescheduleNone
	case claim.ResourceVersion:
		return decide.RescheduleAnnounced
	default:
		return decide.RescheduleDone
	}
}

// announce writes on a Job that its claim, as it is now, goes back to the scheduler. On a Job that has changed
// meanwhile it does not: the watch will bring it.
func (c *Controller) announce(ctx context.Context, o *observation, run decide.Run) error {
	job := o.jobs[run.Name]
	err := c.patchJob(ctx, job.Namespace, job.Name, map[string]any{"metadata": map[string]any{
		"uid": job.UID, "resourceVersion": job.ResourceVersion,
		"annotations": map[string]string{jobs.AnnRescheduled(string(o.uid)): o.claim.ResourceVersion},
	}})
	if apierrors.IsConflict(err) {
		c.lookAgain(o, run)
		return nil
	}
	return err
}

// reschedule takes the selected node off the claim as it was looked at: the scheduler then chooses again for the
// pod that waits for it. A claim that has changed meanwhile is left as it is, and the watch will bring it.
func (c *Controller) reschedule(ctx context.Context, o *observation, why string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.claim.UID, "resourceVersion": o.claim.ResourceVersion,
		"annotations": map[string]any{storagehelpers.AnnSelectedNode: nil},
	}})
	if err != nil {
		return fmt.Errorf("encode the claim %s without its node: %w", o.at, err)
	}
	_, err = c.client.CoreV1().PersistentVolumeClaims(o.claim.Namespace).
		Patch(ctx, o.claim.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("take the selected node off the claim %s: %w", o.at, err)
	}
	c.event(o.claim, nil, corev1.EventTypeNormal, reasonRescheduling, why+"; the scheduler is to choose a node again")
	return nil
}
