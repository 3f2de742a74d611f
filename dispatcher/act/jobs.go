package act

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/series"
)

// How long a Job is kept when its record is released: long enough for a person to look at a failure.
const (
	keepDone   = 5 * time.Minute
	keepFailed = time.Hour
)

// requeueShared is how soon a UID is observed again that could not write on a Job of several claims because another UID had.
const requeueShared = 100 * time.Millisecond

// patchJob writes on a Job as it was observed. A change of a Job that serves several claims enqueues only the claims
// that it is about. So if there was a conflict, and the UID shares the Job, the UID is requeued.
func (a *Actor) patchJob(ctx context.Context, job *batchv1.Job, patch fields) (outcome, Result, error) {
	err := mergePatch(ctx, a.Client.BatchV1().Jobs(job.Namespace), job, patch)
	how, err := outcomeOf(err, "write on the Job %s/%s", job.Namespace, job.Name)
	if how == changed && len(jobs.UIDs(job)) > 1 {
		return how, Result{RequeueAfter: requeueShared}, err
	}
	return how, Result{}, err
}

// recordOutcome writes the outcome of a run on its Job. A Job that has changed since it was observed may have the
// outcome already, so the event is emitted only after a successful write.
func (a *Actor) recordOutcome(ctx context.Context, o *observe.Observation, d decide.RecordOutcome) (Result, error) {
	job := o.Jobs[d.Run.Name]
	text, err := json.Marshal(d.Run.Outcome)
	if err != nil {
		return Result{}, fmt.Errorf("encode the outcome of the Job %s: %w", job.Name, err)
	}
	how, result, err := a.patchJob(ctx, job, annotate(map[string]string{jobs.Key(job, string(o.UID), jobs.AnnOutcome): string(text)}))
	if how == changed || err != nil {
		return result, err
	}
	a.emitOutcome(o, d)
	klog.FromContext(ctx).Info("Run ended", "claim", o.At, "uid", o.UID, "job", klog.KObj(job), "verdict", d.Run.Outcome.Verdict, "success", d.Success)
	a.Series.CountRun(countedRun(o, d))
	return result, nil
}

// releaseRecord removes the record finalizer of a Job, so that the Job expires. If the Job is still the record of
// another claim, it is only marked as released by this one.
func (a *Actor) releaseRecord(ctx context.Context, o *observe.Observation, d decide.ReleaseRecord) (Result, error) {
	job := o.Jobs[d.Run.Name]
	patch := annotate(map[string]string{jobs.Key(job, string(o.UID), jobs.AnnReleased): "true"})
	if !d.Run.Others.Held {
		held := max(a.Clock.Now().Sub(d.Run.Outcome.Finished), 0)
		patch = withoutFinalizer(job, jobs.FinalizerRecord)
		patch["spec"] = fields{"ttlSecondsAfterFinished": int(keepFor(held, runs.AllSucceeded(job)) / time.Second)}
	}
	how, result, err := a.patchJob(ctx, job, patch)
	if err == nil && how != changed && d.LeftBehind != "" {
		a.emitLeftBehind(o, job, d.LeftBehind)
	}
	return result, err
}

// keepFor returns how long after its end a Job is to be kept that is released now, held after its end. Kubernetes
// counts from the end, so a Job that was held for long would expire before a person could look at it.
func keepFor(held time.Duration, succeeded bool) time.Duration {
	if succeeded {
		return held + keepDone
	}
	return held + keepFailed
}

// waive writes on a Job that serves several claims that this one no longer needs it.
func (a *Actor) waive(ctx context.Context, o *observe.Observation, run decide.Run) (Result, error) {
	job := o.Jobs[run.Name]
	_, result, err := a.patchJob(ctx, job, annotate(map[string]string{jobs.Key(job, string(o.UID), jobs.AnnWaived): "true"}))
	return result, err
}

// announceReschedule writes on a Job that its claim, as it is now, returns to the scheduler.
func (a *Actor) announceReschedule(ctx context.Context, o *observe.Observation, d decide.AnnounceReschedule) (Result, error) {
	job := o.Jobs[d.Run.Name]
	annotations, err := jobs.Announcement(job, string(o.UID), o.Claim.ResourceVersion, d.Returns)
	if err != nil {
		return Result{}, err
	}
	_, result, err := a.patchJob(ctx, job, annotate(annotations))
	return result, err
}

// cancel deletes a Job and, in the foreground, its pods. In the background the pods would stay as long as the record
// finalizer keeps the Job.
func (a *Actor) cancel(ctx context.Context, job *batchv1.Job) error {
	err := a.Client.BatchV1().Jobs(job.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{
		PropagationPolicy: new(metav1.DeletePropagationForeground),
		Preconditions:     &metav1.Preconditions{UID: &job.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the Job %s/%s, which makes no progress: %w", job.Namespace, job.Name, err)
	}
	return nil
}

// removePodFinalizers removes our finalizer from a Job's pods, almost always one. A pod that has changed since it was
// observed is left as it is, and the watch enqueues the UID.
func (a *Actor) removePodFinalizers(ctx context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		if !runs.HasFinalizer(pod) {
			continue
		}
		err := mergePatch(ctx, a.Client.CoreV1().Pods(pod.Namespace), pod, withoutFinalizer(pod, jobs.FinalizerRecord))
		if _, err = outcomeOf(err, "take the finalizer off the pod %s/%s", pod.Namespace, pod.Name); err != nil {
			return err
		}
	}
	return nil
}

// countedRun returns what the series count of a run.
func countedRun(o *observe.Observation, d decide.RecordOutcome) series.Run {
	r := series.Run{
		Source: o.ClonedFrom(), Class: o.Delete.Config.Source.Class, Verb: d.Run.Verb, Undo: d.Run.IsUndo(),
		Verdict: d.Run.Outcome.Verdict, Success: d.Success, Attempt: d.Run.Attempt,
		Took: d.Run.Outcome.Finished.Sub(o.Jobs[d.Run.Name].CreationTimestamp.Time),
	}
	switch {
	case o.Claim != nil:
		r.Class = storagehelpers.GetPersistentVolumeClaimClass(o.Claim)
	case o.PV != nil:
		r.Class = o.PV.Spec.StorageClassName
	}
	return r
}
