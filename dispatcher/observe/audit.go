package observe

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// isList reports whether a Job lists what a storage has, for an administrator's audit. It is the record of nothing.
func isList(job *batchv1.Job) bool { return job.Labels[jobs.LabelVerb] == string(contract.List) }

// observeList finds the earliest list of the UID that waits at its gate. Past it, a list is its audit's alone.
func (b *Observer) observeList(ctx context.Context, reader cluster.Reader, o *Observation) error {
	all, err := reader.Jobs(ctx, o.UID)
	if err != nil {
		return err
	}
	for _, job := range all {
		if !isList(job) || job.DeletionTimestamp != nil {
			continue
		}
		pods, err := reader.Pods(ctx, job)
		if err != nil {
			return err
		}
		if gated := runs.GatedPod(pods); gated != nil && (o.View.List == nil || gated.CreationTimestamp.Time.Before(o.View.List.GatedSince)) {
			o.View.List, o.Jobs[job.Name], o.Pods[job.Name] = b.listOf(o, job, gated), job, pods
			o.Audit = b.listUnder(o, job)
			o.View.Audit = o.Audit.Target
		}
	}
	return nil
}

// listOf returns a list that waits at its gate. Others that do are not in its way: all leaders let the earliest run first.
func (b *Observer) listOf(o *Observation, job *batchv1.Job, gated *corev1.Pod) *decide.Run {
	run := &decide.Run{Name: job.Name, Record: runs.RecordOf(job, string(o.UID)), Created: job.CreationTimestamp.Time, First: true, Unfinished: true, Unstarted: true}
	b.setGate(run, job, gated)
	for _, pod := range b.Caches.Pods.By(cluster.ByUID, string(o.UID)) {
		may, until := runs.MayRun(pod, b.Clock.Now())
		if may && runs.GatedPod([]*corev1.Pod{pod}) == nil {
			run.OtherPod, run.RecheckAt = pod.Name, until
		}
	}
	return run
}

// listUnder returns the config of a list.
func (b *Observer) listUnder(o *Observation, job *batchv1.Job) resolve.Resolved {
	class := jobs.RecordOf(job, string(o.UID)).Class // of one that cannot be read the class has no name
	r := b.ForAudit(class, contract.List)
	if r.Target.Problem == nil && r.From.UID != o.UID {
		r.Target.Problem = decide.Problemf(reason.WaitingForConfig, "the ConfigMap %s/%s of the class %s is another one by now", r.From.Namespace, r.From.Name, class)
	}
	return r
}

// observeFix finds the config under which an audit's delete was made, if a run is one that is not over.
func (b *Observer) observeFix(o *Observation, run decide.Run) {
	if !run.IsFix() || run.Recorded != nil {
		return
	}
	o.Audit = b.ForAudit(run.Class, contract.Delete)
	if o.Audit.Target.Problem == nil && run.Record.Name == "" {
		o.Audit.Target.Problem = decide.Problemf(reason.VolumeInDoubt, "its record does not name the claim, so it is not known whether that exists")
	}
	o.View.Audit = o.Audit.Target
}

// fix returns the newest delete of an audit that is not over, or nil.
func (o *Observation) fix() *decide.Run {
	var out *decide.Run
	for i := range o.View.Runs {
		if r := &o.View.Runs[i]; r.IsFix() && r.Recorded == nil && (out == nil || r.Number > out.Number) {
			out = r
		}
	}
	return out
}

// rivalOfFix returns a PV that may stand for the volume which an audit's delete is about. No run that was launched for the claim has to be known for that. The
// UID's own PV is no rival. Unlike other rivals it is looked for by the reader: an administrator may have written the PV a moment ago, no record of the claim says that
// there may be one, and such deletes are rare.
func rivalOfFix(ctx context.Context, reader cluster.Reader, o *Observation) (name, why string, err error) {
	fix := o.fix()
	if fix == nil {
		return "", "", nil
	}
	all, err := reader.AllPVs(ctx)
	mayStandFor := pvs.MayStandFor(contract.Listed{UID: string(o.UID), Volume: fix.Audit, Namespace: o.At.Namespace, Name: o.At.Name})
	for _, pv := range all {
		if pv.Name != contract.PVName(string(o.UID)) && mayStandFor(pv) {
			return pv.Name, "the PersistentVolume " + pv.Name + " may stand for the volume " + quote.Name(fix.Audit), nil
		}
	}
	return "", "", err
}
