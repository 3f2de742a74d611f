package model

import (
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

var verbs = map[verb]contract.Verb{provision: contract.Provision, remove: contract.Delete, expand: contract.Expand}

func verbOf(v contract.Verb) verb {
	for is, named := range verbs {
		if named == v {
			return is
		}
	}
	return noVerb
}

// endings are the verdicts and exit codes of the endings. A code below 0 is none.
var endings = map[ending]struct {
	verdict contract.Verdict
	code    int32
}{
	done: {contract.Done, contract.ExitDone}, tempFail: {contract.TryAgain, contract.ExitTempFail}, badConfig: {contract.BadConfig, contract.ExitConfig},
	badRequest: {contract.BadRequest, contract.ExitBadRequest}, full: {contract.NoCapacity, contract.ExitCapacity},
	notStarted: {contract.NotStarted, -1}, disrupted: {contract.Disrupted, -1}, unknown: {contract.Unknown, -1},
}

func endingOf(v contract.Verdict) ending {
	for is, e := range endings {
		if e.verdict == v {
			return is
		}
	}
	panic("no ending has the verdict " + string(v))
}

func (w *world) request(request, node, rev, source uint8) contract.Request {
	claim := claimFor(request, node, source)
	out := jobs.Request(claim, w.class(), w.config(rev))
	out.SelectedNode, out.Source = claim.Annotations[storagehelpers.AnnSelectedNode], sourceOf(source)
	return out
}

// built are the Jobs as they were created, by what they were created from.
type built map[job]*batchv1.Job

// plan returns what a Job was built from.
func (w *world) plan(j job) jobs.Plan {
	request := w.request(j.hash, j.node, j.rev, j.source)
	p := jobs.Plan{
		Config: w.config(j.rev), Verb: verbs[j.verb], Request: request, PV: w.skeleton(j.hash, j.node, j.rev),
		Number: int(j.number), Attempt: 1, After: int(j.after), NothingBefore: j.clean, KubeAPI: "https://10.0.0.1:6443",
	}
	switch j.verb {
	case provision:
		p.Hash = jobs.Hash(request, p.Config.RequestKeys)
	case expand:
		p.Hash = jobs.SizeHash(resource.MustParse(large))
	case remove, noVerb:
	}
	p.PV.UID = genUID(j.gen)
	p.Request.Undo = j.verb == remove && (j.gen == 0 || j.neverBound)
	return p
}

// create returns the Job of a launch.
func (w *world) create(j job) *batchv1.Job {
	key := job{verb: j.verb, number: j.number, after: j.after, gen: j.gen, rev: j.rev, hash: j.hash, node: j.node, source: j.source, clean: j.clean, neverBound: j.neverBound}
	if out := w.built[key]; out != nil {
		return out
	}
	out, err := jobs.Build(w.plan(key))
	if err != nil {
		panic(err)
	}
	w.built[key] = out
	return out
}

// job returns a Job as the API server holds it.
func (w *world) job(j *job, at int) *batchv1.Job {
	out := *w.create(*j)
	out.UID, out.ResourceVersion = uidOf("job-", out.Name, j.birth), "5"
	out.CreationTimestamp = ago(5*time.Minute - time.Duration(at)*time.Second)
	out.Annotations = maps.Clone(out.Annotations)
	if j.late {
		out.CreationTimestamp = ago(3 * time.Hour)
	}
	if !j.held {
		out.Finalizers = nil
	}
	if j.terminating {
		out.DeletionTimestamp = new(ago(time.Minute))
		if !j.background {
			out.Finalizers = append(slices.Clone(out.Finalizers), metav1.FinalizerDeleteDependents)
		}
	}
	if j.fresh {
		out.DeletionTimestamp = new(ago(0))
	}
	if j.forget {
		out.Annotations[jobs.AnnForget] = uid
	}
	if j.noted > 0 {
		out.Annotations[jobs.AnnConfirmed] = string(podUID(out.Name, j.birth, j.noted-1))
	}
	fixture.Record(&out, uid, func(r *jobs.Record) {
		if j.rival {
			r.Rival = "rescued"
		}
		if j.recorded != noEnd {
			r.Recorded = new(outcomeOf(j))
		}
		if j.described {
			r.Described = description
		}
		r.Rescheduled = map[stage]string{announced: "2", rescheduled: "1"}[j.stage]
	})
	out.Status = statusOf(j)
	return &out
}

// description is what a container says of its PV, where the dispatcher creates the PV.
const description = `{"source":{"nfs":{"server":"10.10.2.4","path":"/gold"}}}`

func statusOf(j *job) batchv1.JobStatus {
	var s batchv1.JobStatus
	switch j.pod {
	case podNone:
	case podWaiting, podRunning, podDone:
		s.Active = 1
	case podEnded, podGone:
		s.Failed = 1
	}
	kind := batchv1.JobComplete
	switch j.cond {
	case unfinished:
		return s
	case complete:
		s.Succeeded, s.Failed = s.Failed, 0
	case failed:
		kind = batchv1.JobFailed
	}
	s.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Minute)}}
	return s
}

func outcomeOf(j *job) runs.Outcome {
	e := endings[j.recorded]
	out := runs.Outcome{Verdict: e.verdict, Finished: now.Add(-time.Hour)}
	if e.code >= 0 {
		out.ExitCode = &e.code
	}
	if j.mayRun {
		out.MayRunUntil = now.Add(time.Hour)
	}
	return out
}

func uidOf(kind, name string, birth uint8) types.UID {
	return types.UID(kind + name + strings.Repeat("+", int(birth)))
}

// publishedBy returns the annotations that report a run on the claim.
func (w *world) publishedBy(s *state) map[string]string {
	if s.published == 0 {
		return nil
	}
	i := s.find(provision, s.published/2)
	if i < 0 || s.jobs[i].recorded == noEnd {
		return map[string]string{contract.AnnResult: "failed"}
	}
	return runs.Report(1, outcomeOf(&s.jobs[i]), s.published%2 == 1, &corev1.PersistentVolume{})
}

// podUID returns the UID of a pod of a Job that had others before.
func podUID(job string, birth, others uint8) types.UID {
	return uidOf("pod-", job, birth) + types.UID(strings.Repeat("-", int(others)))
}

// pod returns the pod of a Job, or nil.
func (w *world) pod(j *job) *corev1.Pod {
	if j.pod == podNone || j.pod == podGone {
		return nil
	}
	from := w.create(*j)
	age := time.Minute
	if j.late {
		age = 2 * time.Hour
	}
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: from.Name + "-abcd" + string('e'+rune(j.nth)), UID: podUID(from.Name, j.birth, j.nth), ResourceVersion: "6", CreationTimestamp: ago(age),
		Labels: maps.Clone(from.Spec.Template.Labels),
	}, Spec: from.Spec.Template.Spec}
	out.Labels[batchv1.JobNameLabel] = from.Name
	out.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "batch/v1", Kind: "Job", Name: from.Name, UID: uidOf("job-", from.Name, j.birth), Controller: new(true),
	}}
	if !j.gated {
		out.Spec.SchedulingGates, out.Spec.NodeName = nil, "node-1"
		out.Status.StartTime = new(ago(age))
	}
	if j.kept {
		out.Finalizers = []string{jobs.FinalizerRecord}
	}
	if j.deleting {
		out.DeletionTimestamp, out.DeletionGracePeriodSeconds = new(ago(0)), new(int64(30))
	}
	if j.forced {
		out.DeletionTimestamp, out.DeletionGracePeriodSeconds = new(ago(time.Minute)), new(int64(0))
	}
	out.Status.Phase, out.Status.ContainerStatuses = containerOf(j, out)
	return out
}

func containerOf(j *job, pod *corev1.Pod) (corev1.PodPhase, []corev1.ContainerStatus) {
	c := corev1.ContainerStatus{Name: contract.Container}
	kind := corev1.PodPending
	switch {
	case j.gated && j.pod == podEnded:
		return corev1.PodFailed, nil
	case j.gated:
		return corev1.PodPending, nil
	case j.pod == podRunning:
		kind, c.ContainerID, c.State.Running = corev1.PodRunning, "c", &corev1.ContainerStateRunning{StartedAt: ago(time.Minute)}
	case j.pod == podDone, j.pod == podEnded && j.end != notStarted:
		kind, c.ContainerID = corev1.PodFailed, "c"
		switch {
		case j.pod == podDone:
			kind = corev1.PodRunning
		case j.end == done:
			kind = corev1.PodSucceeded
		}
		c.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: max(endings[j.end].code, 0), Message: description}
	case j.pod == podEnded:
		kind, pod.Status.Reason = corev1.PodFailed, "DeadlineExceeded"
		c.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}
	default:
		c.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}
	}
	return kind, []corev1.ContainerStatus{c}
}
