package act

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/series"
)

// requeueShared is how soon a UID is observed again that could not write on a Job of several claims
// because another UID had.
const requeueShared = 100 * time.Millisecond

// patchJob writes on a Job as it was observed. A change of a Job that serves several claims
// enqueues only the claims that it is about. So if there was a conflict, and the UID shares the
// Job, the UID is requeued.
func (a *Actor) patchJob(ctx context.Context, job *batchv1.Job, change patch.Fields) (patch.Outcome, Result, error) {
	err := a.noted(patch.Merge(ctx, a.Client.BatchV1().Jobs(job.Namespace), job, change))
	how, err := patch.OutcomeOf(err, "patch the Job %s/%s", job.Namespace, job.Name)
	if how == patch.Changed && len(jobs.UIDs(job)) > 1 {
		return how, Result{RequeueAfter: requeueShared}, err
	}
	return how, Result{}, err
}

// patchRecord changes what a Job records of a UID.
func (a *Actor) patchRecord(ctx context.Context, o *observe.Observation, job *batchv1.Job, change func(*jobs.Record)) (patch.Outcome, Result, error) {
	annotations, err := jobs.Recorded(job, change, string(o.UID))
	if err != nil {
		return 0, Result{}, err
	}
	return a.patchJob(ctx, job, patch.Annotate(annotations))
}

// Ended is a UID and what is to be recorded of its run.
type Ended struct {
	O      *observe.Observation
	Record decide.RecordOutcome
}

// RecordOutcomes writes the outcomes of one run on its Job, for all the claims that it served or
// for some, in one write. Before, it lets the node end the sidecars that are left. A Job that has
// changed since it was observed may have the outcomes already, so the events are emitted only after
// a successful write.
func (a *Actor) RecordOutcomes(ctx context.Context, all ...Ended) (Result, error) {
	first := all[0]
	job := first.O.Jobs[first.Record.Run.Name]
	change, err := recordPatch(job, all, a.Clock.Now())
	if err != nil {
		return Result{}, err
	}
	if err := a.endSidecars(ctx, first.O.Pods[job.Name]); err != nil {
		return a.unlessRefused(ctx, first.O, first.Record, Result{}, err)
	}
	how, result, err := a.patchJob(ctx, job, change)
	if how == patch.Changed || err != nil {
		return a.unlessRefused(ctx, first.O, first.Record, result, err)
	}
	for _, one := range all {
		a.emitOutput(one.O, one.Record)
		klog.FromContext(ctx).Info("Run ended", "claim", one.O.At, "uid", one.O.UID, "job", klog.KObj(job), "verdict", one.Record.Run.Outcome.Verdict, "success", one.Record.Success)
		if !one.Record.Describes {
			a.reportRun(one.O, one.Record)
		}
	}
	return Result{Recorded: how == patch.Written}, nil
}

// endSidecars lowers the deadlines of pods whose sidecars alone are left. The kubelet then ends them
// with their grace period.
func (a *Actor) endSidecars(ctx context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		if !runs.IsToEnd(pod) {
			continue
		}
		answer, err := patch.Strategic(ctx, a.Client.CoreV1().Pods(pod.Namespace), pod, patch.Fields{"spec": patch.Fields{"activeDeadlineSeconds": runs.EndNow}})
		how, err := patch.OutcomeOf(a.noted(answer, err), "lower the deadline of the pod %s/%s", pod.Namespace, pod.Name)
		if err != nil || how == patch.Changed {
			return err
		}
	}
	return nil
}

// Learned returns what the writing of its outcome has taught about a run's UID, or nil: that the
// record is released since a retained PV stands for the volume.
func (e Ended) Learned(written Result) *observe.Hint {
	if written.Recorded && e.Record.Run.Verb == contract.Provision && e.Record.Success && e.Record.Release && !e.O.View.Volume.PolicyDelete {
		return &observe.Hint{ReleasedFor: e.O.View.Volume.UID}
	}
	return written.Hint
}

// recordPatch returns the patch that records outcomes, and releases the records that are no longer
// needed with them.
func recordPatch(job *batchv1.Job, all []Ended, now time.Time) (patch.Fields, error) {
	ended := map[string]Ended{}
	for _, one := range all {
		ended[string(one.O.UID)] = one
	}
	described, err := descriptionOf(job, all)
	if err != nil {
		return nil, err
	}
	annotations, err := jobs.Recorded(job, func(r *jobs.Record) {
		one := ended[r.ClaimUID]
		r.Recorded, r.Described, r.Released = &one.Record.Run.Outcome, described, one.Record.Release
	}, slices.Collect(maps.Keys(ended))...)
	if err != nil {
		return nil, err
	}
	return unlessHeld(job, annotations, all, now), nil
}

// descriptionOf returns what the container of a Job has said of the PV that the dispatcher is to
// create, if it is.
func descriptionOf(job *batchv1.Job, all []Ended) (string, error) {
	if !all[0].Record.Describes {
		return "", nil
	}
	text, err := runs.Description(all[0].O.Pods[job.Name])
	if err != nil {
		return "", fmt.Errorf("read the volume that the Job %s describes: %w", job.Name, err)
	}
	return text, nil
}

// unlessHeld returns a patch of a Job's record, which also removes the record finalizer if no claim
// needs the Job as its record any more, so that the Job expires.
func unlessHeld(job *batchv1.Job, record map[string]string, ended []Ended, now time.Time) patch.Fields {
	recorded := job.DeepCopy()
	maps.Copy(recorded.Annotations, record)
	if jobs.HeadOf(recorded).Held > 0 {
		return patch.Annotate(record)
	}
	change := patch.WithoutFinalizer(recorded, jobs.FinalizerRecord)
	change["metadata"].(patch.Fields)["annotations"] = record
	change["spec"] = patch.Fields{"ttlSecondsAfterFinished": min(int64(keepFor(recorded, ended, now)/time.Second), math.MaxInt32)}
	return change
}

// keepFor returns how long after its end a Job is kept that is released now. One that succeeded
// outlives every Job of an earlier attempt: what the newest Job of a claim says is its result, and
// where its PV names no config revision, that of its volume.
func keepFor(job *batchv1.Job, ended []Ended, now time.Time) time.Duration {
	first, head := ended[0], jobs.HeadOf(job)
	out, succeeded := first.Record.Run.Outcome, head.Unrecorded == 0 && head.Failed == 0
	keep := runs.KeepFor(out, now, succeeded, first.O.ManyKept[job.Name])
	for _, one := range ended {
		for _, earlier := range one.O.Jobs {
			if succeeded && earlier.CreationTimestamp.Before(&job.CreationTimestamp) && earlier.Labels[jobs.LabelVerb] == job.Labels[jobs.LabelVerb] {
				keep = max(keep, runs.ExpiresAt(earlier).Sub(out.Finished)+time.Minute)
			}
		}
	}
	return keep
}

// releaseRecord removes the record finalizer of a Job, so that the Job expires. If the Job is still
// the record of another claim, it is only marked as released by this one. What stays in the storage
// is reported before, and on record: the answer to this write may be lost, or its writer die.
func (a *Actor) releaseRecord(ctx context.Context, o *observe.Observation, d decide.ReleaseRecord) (Result, error) {
	job := o.Jobs[d.Run.Name]
	annotations, err := jobs.Recorded(job, func(r *jobs.Record) { r.Released, r.LeftBehind = true, cmp.Or(d.LeftBehind, r.LeftBehind) }, string(o.UID))
	if err != nil {
		return Result{}, err
	}
	if d.LeftBehind != "" {
		a.emitLeftBehind(job, claimOf(o), d.LeftBehind)
	}
	ended := []Ended{{O: o, Record: decide.RecordOutcome{Run: d.Run}}}
	_, result, err := a.patchJob(ctx, job, unlessHeld(job, annotations, ended, a.Clock.Now()))
	return result, err
}

// announceReschedule writes on a Job that its claim, as it is now, returns to the scheduler.
func (a *Actor) announceReschedule(ctx context.Context, o *observe.Observation, d decide.AnnounceReschedule) (Result, error) {
	job := o.Jobs[d.Run.Name]
	_, result, err := a.patchRecord(ctx, o, job, func(r *jobs.Record) { r.Rescheduled, r.Returns = o.Claim.ResourceVersion, d.Returns })
	return result, err
}

// cancelRun deletes the Job of a run, or writes on it that this claim no longer needs it.
func (a *Actor) cancelRun(ctx context.Context, o *observe.Observation, d decide.Cancel) (Result, error) {
	job := o.Jobs[d.Run.Name]
	if d.Waive {
		_, result, err := a.patchRecord(ctx, o, job, func(r *jobs.Record) { r.Waived = true })
		return result, err
	}
	return Result{}, a.cancel(ctx, job)
}

// cancel deletes a Job and, in the foreground, its pods. In the background the pods would stay as
// long as the record finalizer keeps the Job.
func (a *Actor) cancel(ctx context.Context, job *batchv1.Job) error {
	err := a.Client.BatchV1().Jobs(job.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{
		PropagationPolicy: new(metav1.DeletePropagationForeground),
		Preconditions:     &metav1.Preconditions{UID: &job.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the Job %s/%s without progress: %w", job.Namespace, job.Name, err)
	}
	a.Writes.Deleted(job)
	return nil
}

// removePodFinalizers removes our finalizer from a Job's pods, almost always one. The kubelet may
// still write on a pod, so it is removed whatever has changed.
func (a *Actor) removePodFinalizers(ctx context.Context, o *observe.Observation, run decide.Run) error {
	for _, pod := range runs.ReleasablePods(o.Pods[run.Name]) {
		if run.Name == "" && o.MayOrphanHaveLeft(pod) {
			a.emit(pod, claimOf(o), corev1.EventTypeWarning, reason.LeftBehind, reason.OrphanLeft(jobs.UIDsOfPod(pod)))
		}
		err := a.noted(patch.Strategic(ctx, a.Client.CoreV1().Pods(pod.Namespace), pod, patch.DropFinalizer(jobs.FinalizerRecord)))
		if _, err = patch.OutcomeOf(err, "remove the finalizer from the pod %s/%s", pod.Namespace, pod.Name); err != nil {
			return err
		}
	}
	return nil
}

// countedRun returns what the series count of a run. The class is never that of the PV, for which the
// container that writes it chooses any.
func countedRun(o *observe.Observation, d decide.RecordOutcome) series.Run {
	r := series.Run{
		Source: o.ClonedFrom(), Class: o.Delete.Config.Source.Class, Verb: d.Run.Verb, Undo: d.Run.IsUndo(),
		Verdict: d.Run.Outcome.Verdict, Success: d.Success, Attempt: d.Run.Attempt,
		Spare: d.Success && d.Run.Verb == contract.Provision && o.View.Claim == decide.ClaimBoundElsewhere,
		Took:  d.Run.Outcome.Finished.Sub(o.Jobs[d.Run.Name].CreationTimestamp.Time),
	}
	if o.Claim != nil {
		r.Class = storagehelpers.GetPersistentVolumeClaimClass(o.Claim)
	}
	return r
}
