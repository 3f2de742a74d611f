package controller

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// offer is the PV that a container with write-pv: dispatcher describes, or why it cannot be written.
func (c *Controller) offer(job *batchv1.Job, pods []*corev1.Pod) (*corev1.PersistentVolume, string) {
	_, skeleton, err := runs.RecordedRequest(job.Spec.Template.Annotations, job.Labels[contract.LabelClaimUID])
	if err != nil {
		return nil, err.Error()
	}
	offer, err := runs.ReadDescribedPV(pods)
	if err != nil {
		return nil, err.Error()
	}
	pv, err := offer.Complete(skeleton, c.opts.Allowed[job.Namespace])
	if err != nil {
		return nil, err.Error()
	}
	return pv, ""
}

// writeVolume makes the PV. One that exists already is found at the next look, and judged there.
func (c *Controller) writeVolume(ctx context.Context, o *observation, run decide.Run) error {
	job := o.jobs[run.Name]
	pods, err := c.live(o).pods(ctx, job)
	if err != nil {
		return err
	}
	pv, refused := c.offer(job, pods)
	if refused != "" {
		return nil // it was readable a moment ago; the next look settles the run
	}
	_, err = c.client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err): // the image's fault: the run has failed
		run.Refused = "the API server refused the PersistentVolume that it describes: " + err.Error()
		return c.settle(ctx, o, decide.RecordOutcome{Run: run})
	case err != nil:
		return fmt.Errorf("write the PersistentVolume that the Job %s/%s describes: %w", job.Namespace, job.Name, err)
	}
	return nil
}
