package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
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
	case decide.ReportProblem:
		c.tellProblem(o, a.Problem)
		return c.until(a.Until), nil
	case decide.StoreRevision:
		return 0, c.pin(ctx, o.serve.cfg.Source)
	case decide.AwaitSlot:
		c.standInLine(o, a)
		return 0, nil
	case decide.Launch:
		return c.launch(ctx, o, a)
	case decide.AnnounceReschedule:
		return 0, c.announce(ctx, o, a.Run)
	case decide.Reschedule:
		return 0, c.reschedule(ctx, o, a.Why)
	case decide.Cancel:
		return 0, c.cancel(ctx, o.jobs[a.Run.Name])
	case decide.Waive:
		return 0, c.note(ctx, o, a.Run, jobs.AnnWaived)
	case decide.RemovePodFinalizer:
		return 0, c.letPodsGo(ctx, o.jobs[a.Run.Name])
	case decide.CreatePV:
		return 0, c.writeVolume(ctx, o, a.Run)
	case decide.RecordOutcome:
		return 0, c.settle(ctx, o, a)
	case decide.PublishResult:
		return c.show(ctx, o, a)
	case decide.ReleaseRecord:
		return 0, c.release(ctx, o, a)
	case decide.AddFinalizer, decide.RemoveFinalizer, decide.DeleteUnboundPV, decide.DeletePV:
		return 0, c.reclaim(ctx, o, a)
	case decide.Begin, decide.Refuse, decide.SetPVCapacity, decide.HandOver, decide.Finish:
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
func (c *Controller) settle(ctx context.Context, o *observation, a decide.RecordOutcome) error {
	job := o.jobs[a.Run.Name]
	outcome, err := json.Marshal(a.Run.Outcome)
	if err != nil {
		return fmt.Errorf("encode the outcome of the Job %s: %w", job.Name, err)
	}
	err = c.patchJob(ctx, job.Namespace, job.Name, map[string]any{"metadata": map[string]any{
		"uid":             job.UID,
		"resourceVersion": job.ResourceVersion,
		"annotations":     map[string]any{jobs.Key(job, string(o.uid), jobs.AnnOutcome): string(outcome)},
	}})
	switch {
	case apierrors.IsConflict(err):
		c.lookAgain(o, a.Run)
		return nil
	case err != nil:
		return err
	}
	c.tellSettled(o, a)
	klog.FromContext(ctx).Info("ended", "claim", o.at, "uid", o.uid, "job", klog.KObj(job), "verdict", a.Run.Outcome.Verdict, "success", a.Success)
	c.series.count(o, a, classOf(o))
	return nil
}

// show writes a run's result on the claim. The UID stands in the patch: another claim of the same name
// must not get it.
func (c *Controller) show(ctx context.Context, o *observation, a decide.PublishResult) (time.Duration, error) {
	claim := applycorev1.PersistentVolumeClaim(o.claim.Name, o.claim.Namespace).
		WithUID(o.uid).
		WithAnnotations(result(a.Run, a.Success, o.pv))
	_, err := c.client.CoreV1().PersistentVolumeClaims(o.claim.Namespace).
		Apply(ctx, claim, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return 0, nil // the claim has gone; the watch says so too
	case refused(err):
		return c.withoutShowing(ctx, o, a, err)
	case err != nil:
		return 0, fmt.Errorf("write the result on the claim %s: %w", o.at, err)
	}
	return 0, nil
}

// withoutShowing goes on where a claim must not be written on: an admission webhook or policy refuses it,
// perhaps for good, and the record would be held and nothing be retried until a person finds out. The Job's
// event says so instead.
func (c *Controller) withoutShowing(ctx context.Context, o *observation, show decide.PublishResult, cause error) (time.Duration, error) {
	c.tellUnshown(o, show, cause)
	seen, err := c.observe(ctx, c.live(o), o.uid)
	if err != nil {
		return 0, err
	}
	for i := range seen.view.Runs {
		if r := &seen.view.Runs[i]; r.Name == show.Run.Name {
			r.Published = true
		}
	}
	return c.act(ctx, seen, decide.Decide(seen.view))
}

// refused tells whether the API server will not have a write, whoever asks again: by an admission webhook or
// policy, by validation, or by RBAC. A webhook that gives no reason answers 400.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// release lets a Job expire that is no record any more; where it is still another claim's, it says on it
// that it is not this one's.
func (c *Controller) release(ctx context.Context, o *observation, a decide.ReleaseRecord) (err error) {
	job := o.jobs[a.Run.Name]
	if a.Run.Others.Held {
		err = c.note(ctx, o, a.Run, jobs.AnnReleased)
	} else {
		err = c.expire(ctx, o, a.Run)
	}
	if err == nil && a.LeftBehind != "" {
		c.tellLeft(o, job, a.LeftBehind)
	}
	return err
}

func (c *Controller) expire(ctx context.Context, o *observation, run decide.Run) error {
	job := o.jobs[run.Name]
	held := max(c.clock.Now().Sub(run.Outcome.Finished), 0)
	err := c.patchJob(ctx, job.Namespace, job.Name, map[string]any{
		"metadata": map[string]any{
			"uid": job.UID, "resourceVersion": job.ResourceVersion,
			"finalizers": without(job.Finalizers, jobs.FinalizerRecord),
		},
		"spec": map[string]any{"ttlSecondsAfterFinished": int(keep(held, runs.AllSucceeded(job)) / time.Second)},
	})
	return c.orLookAgain(err, o, run)
}

// note writes on a Job that serves several claims what is so for this one, unless the Job has changed since
// it was looked at: what it says of the others decides what is to be written.
func (c *Controller) note(ctx context.Context, o *observation, run decide.Run, annotation string) error {
	job := o.jobs[run.Name]
	err := c.patchJob(ctx, job.Namespace, job.Name, map[string]any{"metadata": map[string]any{
		"uid": job.UID, "resourceVersion": job.ResourceVersion,
		"annotations": map[string]any{jobs.Key(job, string(o.uid), annotation): "true"},
	}})
	return c.orLookAgain(err, o, run)
}

// keep is how long after its end a Job is to be kept that is released now, so long after it. Kubernetes counts
// from the end: a Job that was held for long would go before anybody could look at it.
func keep(held time.Duration, done bool) time.Duration {
	if done {
		return held + keepDone
	}
	return held + keepFailed
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

func without(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(v string) bool { return v == item })
}
