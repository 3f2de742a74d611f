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

// patchJob writes on a Job as it was observed. If that has changed, the change enqueues the Job and its
// claims.
func (a *Actor) patchJob(ctx context.Context, job *batchv1.Job, change patch.Fields) (patch.Effect, error) {
	err := a.noted(patch.Merge(ctx, a.Client.BatchV1().Jobs(job.Namespace), job, change))
	return patch.EffectOf(err, "patch the Job %s/%s", job.Namespace, job.Name)
}

// patchRecord changes what a Job records of a UID.
func (a *Actor) patchRecord(ctx context.Context, o *observe.Observation, job *batchv1.Job, change func(*jobs.Record)) (patch.Effect, error) {
	annotations, err := jobs.ChangeRecords(job, change, string(o.UID))
	if err != nil {
		return 0, err
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
// a successful write. It reports whether they were written, on the Job as it was observed.
func (a *Actor) RecordOutcomes(ctx context.Context, all ...Ended) (recorded bool, err error) {
	first := all[0]
	job := first.O.Jobs[first.Record.Run.Name]
	change, err := recordPatch(job, all, a.Clock.Now())
	if err != nil {
		return false, err
	}
	if err := a.endSidecars(ctx, first.O.Pods[job.Name]); err != nil {
		return false, err
	}
	how, err := a.patchJob(ctx, job, change)
	if how == patch.Changed || err != nil {
		return false, err
	}
	a.emitOutput(first.O, first.Record)
	for _, one := range all {
		klog.FromContext(ctx).Info("Run ended", "claim", one.O.At, "uid", one.O.UID, "job", klog.KObj(job), "verdict", one.Record.Run.Outcome.Verdict, "success", one.Record.Success)
		if !one.Record.Describes {
			a.reportRun(one.O, one.Record)
		}
	}
	return how == patch.Written, nil
}

// endSidecars lowers the deadlines of pods whose sidecars alone are left. The kubelet then ends them
// with their grace period.
func (a *Actor) endSidecars(ctx context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		if !runs.IsToEnd(pod) {
			continue
		}
		answer, err := patch.Strategic(ctx, a.Client.CoreV1().Pods(pod.Namespace), pod, patch.Fields{"spec": patch.Fields{"activeDeadlineSeconds": runs.EndNow}})
		how, err := patch.EffectOf(a.noted(answer, err), "lower the deadline of the pod %s/%s", pod.Namespace, pod.Name)
		if err != nil || how == patch.Changed {
			return err
		}
	}
	return nil
}

// Learned returns what a written outcome teaches about a run's UID, or nil: that the record is
// released since a retained PV stands for the volume.
func (e Ended) Learned() *observe.Hint {
	if e.Record.Run.Verb == contract.Provision && e.Record.Success && e.Record.Release && !e.O.View.Volume.PolicyDelete {
		return &observe.Hint{RecordReleasedOf: e.O.View.Volume.UID}
	}
	return nil
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
	annotations, err := jobs.ChangeRecords(job, func(r *jobs.Record) {
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
// outlives every Job of an earlier attempt: the newest Job of a claim says its result. Where its PV
// names no config revision, that Job names the revision of its volume.
func keepFor(job *batchv1.Job, ended []Ended, now time.Time) time.Duration {
	first, head := ended[0], jobs.HeadOf(job)
	out, succeeded := first.Record.Run.Outcome, head.Unrecorded == 0 && head.Failed == 0
	keep := runs.KeepFor(out, now, succeeded, first.O.HistoryFull[job.Name])
	for _, one := range ended {
		for _, earlier := range one.O.Jobs {
			if succeeded && earlier.CreationTimestamp.Before(&job.CreationTimestamp) && earlier.Labels[jobs.LabelVerb] == job.Labels[jobs.LabelVerb] {
				keep = max(keep, runs.ExpiresAt(earlier).Sub(out.Finished)+time.Minute)
			}
		}
	}
	return keep
}

// Released is a UID and the release of its record.
type Released struct {
	O       *observe.Observation
	Release decide.ReleaseRecord
}

// ReleaseRecords writes on a Job that claims need it no more, in one write, and removes its record
// finalizer if none does, so that the Job expires. What stays in the storage is reported before, and on
// record: the answer to this write may be lost, or its writer die. It returns when to release those whose
// event would be dropped now, zero for none.
func (a *Actor) ReleaseRecords(ctx context.Context, all ...Released) (again time.Duration, err error) {
	released, ended := map[string]decide.ReleaseRecord{}, []Ended{}
	for _, one := range all {
		if one.Release.LeftBehind != "" && a.dropsWarnings(one.O.At.Namespace) {
			again = repeatDropped
			continue
		}
		released[string(one.O.UID)] = one.Release
		ended = append(ended, Ended{O: one.O, Record: decide.RecordOutcome{Run: one.Release.Run}})
	}
	if len(ended) == 0 {
		return again, nil
	}
	job := ended[0].O.Jobs[ended[0].Record.Run.Name]
	annotations, err := jobs.ChangeRecords(job, func(r *jobs.Record) {
		r.Released, r.LeftBehind = true, cmp.Or(released[r.ClaimUID].LeftBehind, r.LeftBehind)
	}, slices.Collect(maps.Keys(released))...)
	if err != nil {
		return again, err
	}
	for _, one := range ended {
		if left := released[string(one.O.UID)].LeftBehind; left != "" {
			a.emitLeftBehind(job, claimOf(one.O), left)
		}
	}
	_, err = a.patchJob(ctx, job, unlessHeld(job, annotations, ended, a.Clock.Now()))
	return again, err
}

// Note writes something else on the Job of one claim: that its volume is kept, or that it returns to the
// scheduler.
func (a *Actor) Note(ctx context.Context, o *observe.Observation, action decide.Action) error {
	switch d := action.(type) { //nolint:gochecksumtype // no other is a note
	case decide.AnnounceReschedule:
		return a.announceReschedule(ctx, o, d)
	case decide.KeepVolume:
		return a.keepVolume(ctx, o, d)
	default:
		return fmt.Errorf("the action %T is no note on a Job", action)
	}
}

// announceReschedule writes on a Job that its claim, as it is now, returns to the scheduler.
func (a *Actor) announceReschedule(ctx context.Context, o *observe.Observation, d decide.AnnounceReschedule) error {
	job := o.Jobs[d.Run.Name]
	_, err := a.patchRecord(ctx, o, job, func(r *jobs.Record) { r.Rescheduled, r.Returns = o.Claim.ResourceVersion, d.Returns })
	return err
}

// Cancel deletes a Job and, in the foreground, its pods. In the background the pods would stay as
// long as the record finalizer keeps the Job.
func (a *Actor) Cancel(ctx context.Context, job *batchv1.Job) error {
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

// freeOrphans frees the pods whose Job no longer exists.
func (a *Actor) freeOrphans(ctx context.Context, o *observe.Observation) error {
	for _, pod := range o.Pods[""] {
		if o.MayOrphanHaveLeft(pod) {
			a.emit(pod, claimOf(o), corev1.EventTypeWarning, reason.LeftBehind, reason.OrphanLeft(jobs.UIDsOfPod(pod)))
		}
	}
	return a.Free(ctx, o.Pods[""])
}

// Free removes our finalizer from pods that have ended, almost always one. The kubelet may still write
// on a pod, so it is removed whatever has changed.
func (a *Actor) Free(ctx context.Context, pods []*corev1.Pod) error {
	for _, pod := range runs.ReleasablePods(pods) {
		err := a.noted(patch.Strategic(ctx, a.Client.CoreV1().Pods(pod.Namespace), pod, patch.DropFinalizer(jobs.FinalizerRecord)))
		if _, err = patch.EffectOf(err, "remove the finalizer from the pod %s/%s", pod.Namespace, pod.Name); err != nil {
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
