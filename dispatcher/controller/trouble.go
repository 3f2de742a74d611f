package controller

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// seeTrouble finds out why a live run makes no progress. Only where neither Job nor pod says it are the
// events asked, which is rare: they are many, and not watched.
func (c *Controller) seeTrouble(ctx context.Context, run *decide.Run, job *batchv1.Job, pods []*corev1.Pod) error {
	now := c.clock.Now()
	run.Stuck, run.RecheckAt = runs.StuckOf(job, pods, nil, now)
	if run.Stuck == nil || run.Stuck.Note != "" {
		return nil
	}
	about := job.UID
	if len(pods) > 0 {
		about = pods[len(pods)-1].UID
	}
	warning, err := c.warningAbout(ctx, job.Namespace, about)
	if err != nil {
		return err
	}
	run.Stuck, run.RecheckAt = runs.StuckOf(job, pods, warning, now)
	if warning == nil {
		run.Stuck = nil // slow, and nobody complains: say nothing yet
	}
	return nil
}

// warningAbout returns the newest warning about an object, or nil.
func (c *Controller) warningAbout(ctx context.Context, namespace string, uid types.UID) (*runs.Warning, error) {
	list, err := c.client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.uid": string(uid), "type": corev1.EventTypeWarning}.String(),
	})
	if err != nil {
		return nil, fmt.Errorf("look for events that tell why a Job in %s does not start: %w", namespace, err)
	}
	var last *corev1.Event
	for i := range list.Items {
		if e := &list.Items[i]; last == nil || last.LastTimestamp.Before(&e.LastTimestamp) {
			last = e
		}
	}
	if last == nil {
		return nil, nil //nolint:nilnil // nothing was said is no error
	}
	return &runs.Warning{Reason: last.Reason, Note: last.Message}, nil
}
