package observe

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// runOf reads one Job of the UID and its pods.
func (b *Observer) runOf(ctx context.Context, reader cluster.Reader, o *Observation, job *batchv1.Job) (decide.Run, error) {
	uid := string(o.UID)
	run := decide.Run{Name: job.Name, Record: runs.RecordOf(job, uid)}
	run.Terminating = job.DeletionTimestamp != nil
	if run.Recorded != nil && !run.Held {
		reader = b.Caches // with the record goes the last reason to ask the API server for the pods
	}
	pods, err := reader.Pods(ctx, job)
	if err != nil {
		return run, err
	}
	o.Pods[job.Name] = pods
	run.PodKept = slices.ContainsFunc(pods, runs.HasFinalizer)
	if run.Recorded != nil {
		run.Outcome = *run.Recorded
		run.Short = run.Record.Short(run.Outcome)
		return run, nil
	}
	if run.Unfinished = !runs.HasEnded(job, pods, b.Clock.Now()); run.Unfinished {
		return run, b.observeStuck(ctx, &run, job, pods)
	}
	run.Outcome = runs.ReadFor(job, uid, pods, b.Clock.Now())
	run.Output = outputOf(job, run, pods)
	run.Short = run.Record.Short(run.Outcome)
	if run.DescribesPV && run.Verb == contract.Provision {
		_, run.Refused = DescribedPV(job, pods, b.Allowed[job.Namespace])
	}
	return run, nil
}

// observeStuck finds out why an unfinished run makes no progress. Only where neither Job nor pod says it are the events read, which is
// rare: they are many, and not cached.
func (b *Observer) observeStuck(ctx context.Context, run *decide.Run, job *batchv1.Job, pods []*corev1.Pod) error {
	now := b.Clock.Now()
	run.Stuck, run.RecheckAt = runs.StuckOf(job, pods, nil, now)
	if run.Stuck == nil || run.Stuck.Note != "" {
		return nil
	}
	about := job.UID
	if len(pods) > 0 {
		about = pods[len(pods)-1].UID
	}
	warning, err := b.Caches.WarningAbout(ctx, job.Namespace, about)
	if err != nil {
		return err
	}
	run.Stuck, run.RecheckAt = runs.StuckOf(job, pods, warning, now)
	if warning == nil {
		run.Stuck = nil // it is slow, and no event says why: report nothing yet
	}
	return nil
}

// outputOf is what is told of a run on its Job: once, whichever of its claims is recorded first.
func outputOf(job *batchv1.Job, run decide.Run, pods []*corev1.Pod) string {
	switch {
	case len(run.UIDs) < 2:
		return run.Outcome.Message
	case runs.AnyRecorded(job):
		return ""
	default:
		return runs.OutputOf(pods)
	}
}

// DescribedPV returns the PV that a container with write-pv: dispatcher describes, or why it cannot be created.
func DescribedPV(job *batchv1.Job, pods []*corev1.Pod, allowed jobs.Allowance) (*corev1.PersistentVolume, string) {
	_, skeleton, err := runs.RecordedRequest(job.Spec.Template.Annotations, job.Labels[contract.LabelClaimUID])
	if err != nil {
		return nil, err.Error()
	}
	described, err := runs.ReadDescribedPV(pods)
	if err != nil {
		return nil, err.Error()
	}
	pv, err := described.Complete(skeleton, allowed)
	if err != nil {
		return nil, err.Error()
	}
	return pv, ""
}

// rescheduleStage is how far a claim has come back to the scheduler after a run.
func rescheduleStage(job *batchv1.Job, claim *corev1.PersistentVolumeClaim) decide.RescheduleStage {
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
