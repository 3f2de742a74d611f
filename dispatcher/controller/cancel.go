package controller

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// letPodsGo takes our finalizer off a Job's pods, almost always one. A pod that has changed meanwhile is left as
// it is: the watch brings it again.
func (c *Controller) letPodsGo(ctx context.Context, job *batchv1.Job) error {
	pods, err := c.caches.podsOf(job)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if !runs.HasFinalizer(pod) {
			continue
		}
		patch, err := finalizersPatch(pod, without(pod.Finalizers, jobs.FinalizerRecord))
		if err != nil {
			return err
		}
		_, err = c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("set the finalizers of the pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// cancel deletes a Job and, in the foreground, its pods: in the background they would stay as long as the
// record's finalizer keeps the Job.
func (c *Controller) cancel(ctx context.Context, job *batchv1.Job) error {
	err := c.client.BatchV1().Jobs(job.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{
		PropagationPolicy: new(metav1.DeletePropagationForeground),
		Preconditions:     &metav1.Preconditions{UID: &job.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the Job %s/%s, which makes no progress: %w", job.Namespace, job.Name, err)
	}
	return nil
}
