package observe

import (
	"cmp"
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/slots"
)

// stuckJob is a Job that Kubernetes says cannot start.
type stuckJob struct {
	*batchv1.Job
	start slots.Start
	cause string
	node  string // whose kubelet says so, if it is one
}

// sameCause returns what two Jobs have in common of which only one is kept.
func (j stuckJob) sameCause() stuckJob { return stuckJob{start: j.start, cause: j.cause, node: j.node} }

// probeInsteadOf returns the Job that is kept instead of one that cannot start, or nothing if this
// one is kept. The oldest of each cause is kept. Those that are kept leave one slot of the class to
// others if it has more than one. Those of one namespace leave half of them: a user may select any
// node for a claim. Each holds a slot for each of its scripts.
func (b *Observer) probeInsteadOf(job *batchv1.Job, stuck *runs.Stuck) string {
	cause := stuck.Cause()
	if cause == "" {
		return ""
	}
	own, probes := stuckJob{job, slots.StartOf(job), cause, stuck.Node}, map[stuckJob]string{}
	most := b.maxParallel(job)
	room, half, used, inNamespace := max(1, most-1), (most+1)/2, 0, map[string]int{}
	var oldest string
	for _, other := range b.stuckJobs(own) {
		oldest = cmp.Or(oldest, other.Name)
		ns := jobs.FirstNamespace(other.Job)
		if probes[other.sameCause()] == "" && used < room && inNamespace[ns] < half {
			probes[other.sameCause()] = other.Name
			n := jobs.ParallelOf(other)
			used += n
			inNamespace[ns] += n
		}
	}
	if probe := cmp.Or(probes[own.sameCause()], oldest); probe != job.Name {
		return probe
	}
	return ""
}

// stuckJobs returns one Job and the others of its class that cannot start, the oldest first.
func (b *Observer) stuckJobs(own stuckJob) []stuckJob {
	all := []stuckJob{own}
	for _, job := range b.Caches.Jobs.In(own.Namespace).By(cluster.ByUnfinished, own.Labels[config.LabelClass]) {
		if job.Name == own.Name || job.DeletionTimestamp != nil {
			continue
		}
		if stuck := b.Caches.StuckOf(job, b.Clock.Now()); stuck.Cause() != "" {
			all = append(all, stuckJob{job, slots.StartOf(job), stuck.Cause(), stuck.Node})
		}
	}
	slices.SortFunc(all, func(x, y stuckJob) int { return byAge(x.Job, y.Job) })
	return all
}

func byAge(x, y *batchv1.Job) int {
	return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
}

// maxParallel returns how many Jobs the config of a Job allows its class, 1 if that is unknown.
func (b *Observer) maxParallel(job *batchv1.Job) int {
	if present, known := b.scheduledAtPresent(job); known {
		return present.MaxParallel
	}
	return 1
}

// isScheduledAnew reports whether a Job under an older revision would be scheduled otherwise now.
// Without that an administrator who corrects a toleration waits until the Job is given up.
func (b *Observer) isScheduledAnew(job *batchv1.Job) bool {
	present, known := b.scheduledAtPresent(job)
	return known && job.Labels[jobs.LabelVerb] != string(contract.Provision) && jobs.Scheduling(present) != jobs.HeadOf(job).Scheduling
}

// scheduledAtPresent returns the config of a Job with the scheduling that its class has now.
func (b *Observer) scheduledAtPresent(job *batchv1.Job) (config.Config, bool) {
	stored := b.Caches.Revisions.Named(job.Annotations[contract.AnnRevision])
	if stored == nil {
		return config.Config{}, false
	}
	judged := b.JudgeStored(stored)
	return b.ScheduledAtPresent(judged.Config), judged.Damaged == nil
}

// observeProbes finds the Jobs that cannot start behind which a run of the UID would wait: only one
// that was cancelled does (decide.behindProbe). To look for them for every UID was a seventh of the
// dispatcher's work.
func (b *Observer) observeProbes(_ context.Context, _ cluster.Reader, o *Observation) error {
	for verb, target := range map[contract.Verb]*decide.Target{
		contract.Provision: &o.View.Provision, contract.Delete: &o.View.Delete, contract.Expand: &o.View.Expand,
	} {
		cancelled := func(r decide.Run) bool { return r.Verb == verb && r.Outcome.Reason == runs.Cancelled }
		if target.Problem != nil || !target.RevisionStored || !slices.ContainsFunc(o.View.Runs, cancelled) {
			continue
		}
		start := o.StartOf(verb)
		if believed := b.Caches.StuckLike(start.Revision, start.Nodes, b.Clock.Now()).Believed(o.NodeOfCancelled(verb)); len(believed) > 0 {
			oldest := believed[0]
			target.Probe = &decide.Problem{Reason: oldest.Reason, Note: reason.BehindProbe(oldest.Namespace, oldest.Name, noteOf(oldest.Job, oldest.Stuck))}
		}
	}
	return nil
}

// NodeOfCancelled returns on which node the newest run of a verb was cancelled before it started, or
// nothing.
func (o *Observation) NodeOfCancelled(verb contract.Verb) string {
	if last := o.View.Newest(verb); last != nil && last.Outcome.Reason == runs.Cancelled {
		return last.Outcome.Node
	}
	return ""
}
