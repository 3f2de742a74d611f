package observe

import (
	"context"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// recordedRun returns what a Job of the UID says of its run by itself.
func recordedRun(uid types.UID, job *batchv1.Job) decide.Run {
	run := decide.Run{Name: job.Name, Record: runs.RecordOf(job, string(uid))}
	run.Terminating, run.Created = job.DeletionTimestamp != nil, job.CreationTimestamp.Time
	run.Confirmed = job.Annotations[jobs.AnnConfirmed] != ""
	run.Newer = jobs.IsNewer(job)
	run.Forget = job.Annotations[jobs.AnnForget] == string(uid)
	_, run.RetryNow = job.Annotations[jobs.AnnRetry]
	return run
}

// isFirst reports whether the UID is the first of those that a run serves. What is found once for all of
// them is found for that one.
func isFirst(run *decide.Run) bool { return run.UIDs[0] == run.ClaimUID }

// readerOf returns what reads the pods of a run. Without the record there is no reason to ask the
// API server for them.
func (b *Observer) readerOf(reader cluster.Reader, run *decide.Run) cluster.Reader {
	if run.Recorded != nil && !run.Held {
		return b.Caches.Cached()
	}
	return reader
}

// observeRun judges a run of the UID by its Job and its pods.
func (b *Observer) observeRun(ctx context.Context, reader cluster.Reader, o *Observation, run *decide.Run, read jobWithPods) error {
	job, pods := read.job, read.pods
	if run.Recorded == nil && !runs.HasEnded(job, pods, b.Clock.Now()) && !hasWritten(o, job, pods) {
		return b.observeUnfinished(ctx, reader, run, read)
	}
	b.observeOutcome(run, string(o.UID), job, pods)
	run.Void = runs.IsReplaced(job, pods)
	o.HistoryFull[job.Name] = run.Held && len(b.Caches.Jobs.In(job.Namespace).By(cluster.ByHistory, job.Labels[config.LabelClass])) >= runs.MaxHistory
	if !run.Outcome.MayRunUntil.IsZero() {
		return b.observeMayRun(ctx, reader, o, run)
	}
	return nil
}

// hasWritten reports whether the container of a run is done, the PV proves it, and the claim is
// bound, or no longer exists. Otherwise a claim that is deleted as soon as it is bound would wait
// for the Job. The kubelet removes the sandbox before it sets the phase of the pod, and the Job
// controller collects pods for a second (SyncJobBatchPeriod in job_controller.go). A claim that is
// not bound yet cannot show its result, and a batch is recorded by one write: both wait for the
// Job. So does a run whose pod has ended, since the Job controller is about to write on its Job.
func hasWritten(o *Observation, job *batchv1.Job, pods []*corev1.Pod) bool {
	isBoundOrGone := o.Claim == nil || o.Claim.Status.Phase == corev1.ClaimBound
	return o.View.Volume.State == decide.Fits && isBoundOrGone && runs.HasSucceeded(pods) && !runs.IsOver(pods[0]) && len(jobs.UIDs(job)) == 1
}

// observeMayRun finds whether the node of an ended run, whose container may still be running, is lost.
func (b *Observer) observeMayRun(ctx context.Context, reader cluster.Reader, o *Observation, run *decide.Run) (err error) {
	if until := run.Outcome.MayRunUntil; until.After(b.Clock.Now()) {
		o.RecheckAt = o.Earlier(until)
	}
	run.LostNode, err = lostNode(ctx, reader, run.Outcome.Node)
	return err
}

// observeUnfinished finds what is in the way of a run that has not ended.
func (b *Observer) observeUnfinished(ctx context.Context, reader cluster.Reader, run *decide.Run, read jobWithPods) error {
	job, pods := read.job, read.pods
	run.Unfinished, run.Unstarted = true, !runs.HasStarted(pods) && !runs.HasVanished(job, pods)
	if gated := runs.GatedPod(pods); gated != nil && !run.Terminating {
		return b.observeGate(ctx, reader, run, read, gated)
	} else if gated != nil { // its Job is deleted in the background, which leaves the pod
		run.Void = !runs.IsLeft(gated, job) && !slices.Contains(job.Finalizers, metav1.FinalizerDeleteDependents)
	}
	b.observeStuck(ctx, run, job, pods)
	return nil
}

// observeStuck notes why an unfinished run makes no progress, and what is to become of it. It is
// void if waiting cannot help, if its Job would be scheduled otherwise now, or if another Job finds
// out when it would start.
func (b *Observer) observeStuck(ctx context.Context, run *decide.Run, job *batchv1.Job, pods []*corev1.Pod) {
	stuck := b.stuckOf(ctx, run, job, pods)
	if stuck == nil {
		return
	}
	if stuck.Reason != "" { // one that is given up may have none
		run.Stuck = &decide.Problem{Reason: stuck.Reason, Note: noteOf(job, stuck).After("the Job %s: ", job.Name)}
	}
	run.Idle = (stuck.Unstarted || stuck.NodeLost) && !run.Terminating
	run.Void = run.Void || !run.Terminating && (stuck.GiveUp || stuck.Unstarted && b.isScheduledAnew(job) || b.probeInsteadOf(job, stuck) != "")
}

// noteOf returns why a Job makes no progress, with the remedy. A user who reads it finds the config by
// nothing else: the Job is in a namespace that the user may not read.
func noteOf(job *batchv1.Job, stuck *runs.Stuck) reason.Note {
	namespace, revision, _ := strings.Cut(job.Annotations[contract.AnnRevision], "/")
	return reason.WithStartRemedy(stuck.Reason, stuck.Note, quote.Name(namespace), quote.Name(config.NameOfRevision(revision)))
}

// observeOutcome reads the outcome of a run that has ended, from its record where there is one.
func (b *Observer) observeOutcome(run *decide.Run, uid string, job *batchv1.Job, pods []*corev1.Pod) {
	run.Terminating = run.Terminating || runs.ExpiresAtOnce(job)
	if run.Recorded != nil {
		*run.Recorded = runs.EndedBy(*run.Recorded, b.Clock.Now(), run.Created)
		run.Outcome = *run.Recorded
		b.observeDescribed(run, job, run.Described)
		return
	}
	run.Outcome = runs.ReadFor(job, uid, pods, b.Clock.Now())
	run.Output = outputOf(job, *run, pods)
	// Any other output is no description: the message of a run that failed was once called one that
	// is not JSON (TestTheOutputOfARunThatFailedIsNoDescription).
	if run.DescribesPV && run.Verb == contract.Provision && run.Outcome.Verdict == contract.Done {
		description, err := runs.Description(pods)
		if err != nil {
			run.WhyNoPV = err.Error()
			return
		}
		b.observeDescribed(run, job, description)
	}
}

// observeDescribed finds why no PV can be created from what a container has said of it.
func (b *Observer) observeDescribed(run *decide.Run, job *batchv1.Job, description string) {
	if run.Recorded == nil || description != "" {
		_, run.WhyNoPV = DescribedPV(job, description, b.Allowed[job.Namespace])
	}
}

// observeGate finds what is in the way of a gated pod. Whatever else is read live, the other pods
// come from the cache, once it shows this one: then it shows every older pod, too. Until then the
// run waits, and the pod's event enqueues the Job. So does that of the Job when the pod is counted.
func (b *Observer) observeGate(ctx context.Context, reader cluster.Reader, run *decide.Run, read jobWithPods, gated *corev1.Pod) error {
	job := read.job
	if !slices.ContainsFunc(read.cached, func(pod *corev1.Pod) bool { return pod.UID == gated.UID }) {
		return nil
	}
	if by := runs.CountedBy(job, gated); b.Clock.Now().Before(by) {
		run.RecheckAt = by
		return nil
	}
	b.setGate(run, job, gated)
	if err := b.observeSources(ctx, reader, run, job); err != nil {
		return err
	}
	for _, pod := range read.cached {
		if pod.UID == gated.UID {
			continue
		}
		if err := b.observeOtherPod(ctx, reader, run, pod); err != nil || run.OtherPod != "" {
			return err
		}
	}
	return nil
}

// setGate notes that a run is gated, and what its pod and its Job say about that. It is void if it
// has too little time left, or if its Job is no record: the leader that created it may have died
// before it deleted the Job for that (TestARunWithoutARecordIsNeverConfirmed).
func (b *Observer) setGate(run *decide.Run, job *batchv1.Job, gated *corev1.Pod) {
	before := runs.ConfirmBefore(job)
	run.Gated, run.GatedSince = true, gated.CreationTimestamp.Time
	run.Void = !before.IsZero() && b.Clock.Now().After(before) || !runs.IsRecord(job)
	if pods := b.Caches.PodsOf(job); runs.HasVanished(job, pods) {
		run.Void = true // the first pod of the Job may still run, and waits for no second one
	}
	run.ForeignGate = len(gated.Spec.SchedulingGates) > 1
}

// observeOtherPod notes if another pod than the gated one may run, and until when or on which node.
func (b *Observer) observeOtherPod(ctx context.Context, reader cluster.Reader, run *decide.Run, pod *corev1.Pod) error {
	end, err := b.endOf(ctx, reader, pod)
	if err == nil && end.mayRun {
		run.OtherPod, run.LostNode, run.RecheckAt = pod.Name, end.lostNode, end.until
	}
	return err
}

// podEnd is what is known of when a pod ends.
type podEnd struct {
	// mayRun is set if a container of the pod may be running now or later.
	mayRun bool
	// until is when that ends without a report of its node, zero if only a report ends it, or the
	// pod's deletion.
	until time.Time
	// lostNode names the node if that does not end its pods at their deadlines.
	lostNode string
}

func (b *Observer) endOf(ctx context.Context, reader cluster.Reader, pod *corev1.Pod) (end podEnd, err error) {
	end.mayRun, end.until = runs.MayRun(pod, b.Clock.Now())
	if end.until.IsZero() {
		return end, nil
	}
	if end.lostNode, err = lostNode(ctx, reader, pod.Spec.NodeName); end.lostNode != "" {
		end.mayRun, end.until = true, time.Time{}
	}
	return end, err
}

// lostNode returns the name of a node if it does not end its pods at their deadlines, or nothing.
func lostNode(ctx context.Context, reader cluster.Reader, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	node, err := reader.Node(ctx, name)
	if err != nil || !runs.IsNodeLost(node) {
		return "", err
	}
	return name, nil
}

// stuckOf returns why an unfinished run makes no progress, or nil, and notes when to recheck. It
// reads events only if neither Job nor pod says why, which is rare. Events are many, and not
// cached.
func (b *Observer) stuckOf(ctx context.Context, run *decide.Run, job *batchv1.Job, pods []*corev1.Pod) (stuck *runs.Stuck) {
	now := b.Clock.Now()
	stuck, run.RecheckAt = runs.StuckOf(job, pods, nil, now)
	if stuck == nil || stuck.Note.Cause != "" {
		return stuck
	}
	about := job.UID
	if pod := runs.NewestPod(pods); pod != nil {
		about = pod.UID
	}
	warning := b.Caches.WarningAbout(ctx, job, about)
	stuck, run.RecheckAt = runs.StuckOf(job, pods, warning, now)
	b.Caches.KeepWarning(job, warning)
	if warning == nil && !stuck.GiveUp {
		return nil // it is slow, and no event says why, so nothing is reported yet
	}
	return stuck
}

// outputOf returns what an event on the Job reports of a run's output. It is reported once, with
// whichever outcomes are recorded first.
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

// DescribedPV returns the PV that a container with write-pv: dispatcher describes, or why it cannot
// be created.
func DescribedPV(job *batchv1.Job, description string, allowed jobs.Allowance) (*corev1.PersistentVolume, string) {
	_, skeleton, err := runs.ReadRequest(job.Spec.Template.Annotations, jobs.UIDs(job)[0])
	if err != nil {
		return nil, err.Error()
	}
	described, err := runs.ReadDescribedPV(description)
	if err != nil {
		return nil, err.Error()
	}
	pv, err := described.Complete(skeleton, allowed)
	if err != nil {
		return nil, err.Error()
	}
	return pv, ""
}

// rescheduleStage returns how far the rescheduling of a claim after a run is.
func rescheduleStage(record jobs.Record, claim *corev1.PersistentVolumeClaim) decide.RescheduleStage {
	if claim == nil {
		return decide.RescheduleNone
	}
	switch record.Rescheduled {
	case "":
		return decide.RescheduleNone
	case claim.ResourceVersion:
		return decide.RescheduleAnnounced
	default:
		return decide.RescheduleDone
	}
}
