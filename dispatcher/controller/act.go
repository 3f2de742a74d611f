package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// fieldManager owns what the dispatcher writes on claims.
const fieldManager = "flex-dispatcher"

// How long a Job is kept once it is no record any more: long enough for a person to look at a failure.
const (
	keepDone   = 5 * time.Minute
	keepFailed = time.Hour
)

// act does one thing: at most one write, then its event and log line. It returns when to look again.
//
//nolint:gocyclo // a line per action
func (c *Controller) act(ctx context.Context, o *observation, action decide.Action) (time.Duration, error) {
	klog.FromContext(ctx).V(2).Info("next", "uid", o.uid, "claim", o.at, "action", fmt.Sprintf("%T", action))
	switch a := action.(type) {
	case decide.Wait:
		return c.until(a.Until), nil
	case decide.Tell:
		c.tellProblem(o, a.Problem)
		return c.until(a.Until), nil
	case decide.Pin:
		return 0, c.pin(ctx, o.serve.cfg.Source)
	case decide.Queue:
		c.standInLine(o, a)
		return 0, nil
	case decide.Launch:
		return c.launch(ctx, o, a)
	case decide.Announce:
		return 0, c.announce(ctx, o, a.Run)
	case decide.Reschedule:
		return 0, c.reschedule(ctx, o, a.Why)
	case decide.Cancel:
		return 0, c.cancel(ctx, o.jobs[a.Run.Name])
	case decide.LetGo:
		return 0, c.letPodsGo(ctx, o.jobs[a.Run.Name])
	case decide.Write:
		return 0, c.writeVolume(ctx, o, a.Run)
	case decide.Settle:
		return 0, c.settle(ctx, o, a)
	case decide.Show:
		return 0, c.show(ctx, o, a)
	case decide.Release:
		return 0, c.release(ctx, o, a)
	case decide.Hold:
		return 0, c.setFinalizers(ctx, o.pv, append(slices.Clone(o.pv.Finalizers), contract.FinalizerStorage))
	case decide.Unhold:
		return 0, c.unhold(ctx, o, a)
	case decide.Remove:
		return 0, c.remove(ctx, o.pv)
	case decide.Begin, decide.Refuse, decide.Grow, decide.HandOver, decide.Finish:
		return 0, c.grow(ctx, o, a)
	default:
		return 0, fmt.Errorf("no hand for the action %T", action)
	}
}

// until turns a time into a wait. It is a little long, never short: a look too soon would only wait
// again.
func (c *Controller) until(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return max(at.Sub(c.clock.Now()), 0) + 10*time.Millisecond
}

// settle writes what became of a run on its Job. On one that has changed since it was looked at, it
// does not: the watch will bring it, perhaps settled already, and nothing is told twice.
func (c *Controller) settle(ctx context.Context, o *observation, a decide.Settle) error {
	job := o.jobs[a.Run.Name]
	outcome, err := json.Marshal(a.Run.Outcome)
	if err != nil {
		return fmt.Errorf("encode the outcome of the Job %s: %w", job.Name, err)
	}
	err = c.patchJob(ctx, job.Namespace, job.Name, map[string]any{"metadata": map[string]any{
		"uid":             job.UID,
		"resourceVersion": job.ResourceVersion,
		"annotations":     map[string]any{contract.AnnOutcome: string(outcome)},
	}})
	switch {
	case apierrors.IsConflict(err):
		return nil
	case err != nil:
		return err
	}
	c.tellSettled(o, a)
	count(o, a, classOf(o))
	return nil
}

// show writes a run's result on the claim. The UID stands in the patch: another claim of the same name
// must not get it.
func (c *Controller) show(ctx context.Context, o *observation, a decide.Show) error {
	claim := applycorev1.PersistentVolumeClaim(o.claim.Name, o.claim.Namespace).
		WithUID(o.uid).
		WithAnnotations(result(a.Run, a.Success, o.pv))
	_, err := c.client.CoreV1().PersistentVolumeClaims(o.claim.Namespace).
		Apply(ctx, claim, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil // the claim has gone; the watch says so too
	case err != nil:
		return fmt.Errorf("write the result on the claim %s: %w", o.at, err)
	}
	return nil
}

// release lets a Job expire that is no record any more.
func (c *Controller) release(ctx context.Context, o *observation, a decide.Release) error {
	job := o.jobs[a.Run.Name]
	keep := keepFailed
	if a.Run.Outcome.Verdict == contract.Done {
		keep = keepDone
	}
	err := c.patchJob(ctx, job.Namespace, job.Name, map[string]any{
		"metadata": map[string]any{
			"uid": job.UID, "resourceVersion": job.ResourceVersion,
			"finalizers": without(job.Finalizers, contract.FinalizerRecord),
		},
		"spec": map[string]any{"ttlSecondsAfterFinished": int(keep / time.Second)},
	})
	if err == nil && a.Left != "" {
		c.tellLeft(o, job, a.Left)
	}
	return err
}

func (c *Controller) patchJob(ctx context.Context, namespace, name string, patch map[string]any) error {
	b, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode a patch of the Job %s/%s: %w", namespace, name, err)
	}
	_, err = c.client.BatchV1().Jobs(namespace).Patch(ctx, name, types.MergePatchType, b, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write on the Job %s/%s: %w", namespace, name, err)
	}
	return nil
}

// unhold lets go of a PV, and tells of a volume that is given up with it.
func (c *Controller) unhold(ctx context.Context, o *observation, a decide.Unhold) error {
	err := c.setFinalizers(ctx, o.pv, without(o.pv.Finalizers, contract.FinalizerStorage))
	if err == nil && a.Left != "" {
		c.event(o.pv, nil, corev1.EventTypeWarning, reasonLeft, "its volume stays in the storage where it is, since "+a.Left)
	}
	return err
}

// setFinalizers replaces a PV's finalizers, unless somebody has changed the PV meanwhile.
func (c *Controller) setFinalizers(ctx context.Context, pv *corev1.PersistentVolume, finalizers []string) error {
	b, err := finalizersPatch(pv, finalizers)
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().PersistentVolumes().Patch(ctx, pv.Name, types.MergePatchType, b, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("set the finalizers of the PersistentVolume %s: %w", pv.Name, err)
	}
	return nil
}

// finalizersPatch replaces an object's finalizers, unless the object has changed meanwhile.
func finalizersPatch(obj metav1.Object, finalizers []string) ([]byte, error) {
	b, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(), "finalizers": finalizers,
	}})
	if err != nil {
		return nil, fmt.Errorf("encode the finalizers of %s: %w", obj.GetName(), err)
	}
	return b, nil
}

// remove deletes a PV. Our finalizer holds it until the next step takes that off, so that a crash
// between the two leaves a PV which says that its volume is gone, not one that knows nothing.
func (c *Controller) remove(ctx context.Context, pv *corev1.PersistentVolume) error {
	err := c.client.CoreV1().PersistentVolumes().Delete(ctx, pv.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &pv.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the PersistentVolume %s: %w", pv.Name, err)
	}
	return nil
}

func without(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(v string) bool { return v == item })
}
