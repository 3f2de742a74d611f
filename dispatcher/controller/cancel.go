package controller

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// keepPods makes the Job's pods stay, when they are deleted, until they have been read.
func (c *Controller) keepPods(ctx context.Context, job *batchv1.Job) error {
	return c.eachPod(ctx, job, func(pod *corev1.Pod) []string {
		if jobs.Kept(pod) || pod.DeletionTimestamp != nil {
			return pod.Finalizers
		}
		return append(slices.Clone(pod.Finalizers), contract.FinalizerRecord)
	})
}

func (c *Controller) letPodsGo(ctx context.Context, job *batchv1.Job) error {
	return c.eachPod(ctx, job, func(pod *corev1.Pod) []string {
		return without(pod.Finalizers, contract.FinalizerRecord)
	})
}

// eachPod sets the finalizers of a Job's pods, almost always one. A pod that has changed meanwhile is left
// as it is: the watch brings it again.
func (c *Controller) eachPod(ctx context.Context, job *batchv1.Job, want func(*corev1.Pod) []string) error {
	pods, err := c.caches.podsOf(job)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		finalizers := want(pod)
		if slices.Equal(finalizers, pod.Finalizers) {
			continue
		}
		patch, err := finalizersPatch(pod, finalizers)
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
		return fmt.Errorf("delete the Job %s/%s, which has not started: %w", job.Namespace, job.Name, err)
	}
	return nil
}
