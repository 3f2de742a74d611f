package run

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/act"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Look says which facts are enough for what a claim says about a Job.
type Look int

// The looks.
const (
	Cached Look = iota // what the caches show
	AsOwn              // what is enough for the claim's own loop
	Live               // what the API server says now
)

// Claims is what the loop of the claims knows.
type Claims interface {
	// Say returns what a claim says about a Job, by its name.
	Say(ctx context.Context, uid types.UID, job string, look Look) (*observe.Observation, decide.Action, error)
	// Enqueue lets a claim be reconciled.
	Enqueue(uid types.UID)
	// Learn keeps what a write has taught about a claim, or nil.
	Learn(uid types.UID, hint *observe.Hint)
	// Cancelled notes that a gated run of a claim was cancelled.
	Cancelled(uid types.UID)
}

// Loop takes one step after the other for each Job.
type Loop struct {
	Caches  *cluster.Caches
	Written *cluster.Written
	Actor   *act.Actor
	Clock   clock.PassiveClock
	Claims  Claims
	// Queue has the Jobs that are to be reconciled, by "namespace/name".
	Queue workqueue.TypedRateLimitingInterface[string]

	asking asking
}

// answer is what is decided for a claim, and from which facts. A claim that could not be observed has
// only its error.
type answer struct {
	uid    types.UID
	o      *observe.Observation
	action decide.Action
	look   Look
	err    error
}

// isSure reports whether an answer rests on facts that are enough for it.
func (one answer) isSure() bool {
	return one.err != nil || one.look == Live || decide.IsSafeOnStaleFacts(one.action)
}

// Ask enqueues a Job about which a claim has something to say that the Job does not show itself.
func (l *Loop) Ask(key string, uid types.UID) {
	l.asking.put(key, uid)
	l.Queue.Add(key)
}

// Reconcile takes one step for one Job. It returns when to take the next, zero for when something
// changes.
func (l *Loop) Reconcile(ctx context.Context, key string) (after time.Duration, err error) {
	if since := l.Written.Since(types.UID(key)); !since.IsZero() && l.Clock.Since(since) < cluster.BehindFor {
		return cluster.BehindFor - l.Clock.Since(since), nil
	}
	j, done := l.read(key), false
	j.asking = l.asking.take(key)
	if len(j.asking) == 0 && !j.mayAct(l.Clock.Now()) {
		return 0, nil
	}
	defer func() {
		if !done { // it failed, has panicked or is to be repeated, whoever asked; no claim has an empty UID
			l.asking.put(key, append(j.asking, "")...)
		}
	}()
	after, err = l.step(ctx, j)
	done = err == nil && after == 0
	return after, err
}

func (l *Loop) step(ctx context.Context, j seen) (time.Duration, error) {
	if j.job != nil && IsToBeFreed(j.job, j.pods) {
		if freed, err := l.free(ctx, j.job, j.pods); freed || err != nil {
			return 0, err
		}
	}
	now := l.Clock.Now()
	if until := runs.CountedBy(j.job, runs.GatedPod(j.pods)); now.Before(until) {
		return until.Sub(now), nil
	}
	action, answers := l.consult(ctx, j)
	failed := errorOf(answers)
	if action == Wait { // each claim has its own time for what it waits for
		return 0, errors.Join(failed, l.reportStuck(ctx, j, answers))
	}
	after, err := l.carryOut(ctx, action, j.Name, about(j.Name, action, answers))
	return after, errors.Join(failed, err)
}

// seen is a Job as the caches show it. They may show its gated pod before it.
type seen struct {
	Job
	job  *batchv1.Job
	pods []*corev1.Pod
	uids []string
	// asking are the claims that have something to say about it.
	asking []types.UID
}

func (l *Loop) read(key string) seen {
	namespace, name, _ := strings.Cut(key, "/")
	if job := l.Caches.Jobs.Named(key); job != nil {
		return seen{Job: Job{name, isDelete(job)}, job: job, pods: l.Caches.PodsOf(job), uids: uidsOf(job)}
	}
	pods := l.Caches.Pods.In(namespace).By(cluster.ByJob, name)
	if gated := runs.GatedPod(pods); gated != nil {
		return seen{Job: Job{name, isDelete(gated)}, pods: pods, uids: jobs.UIDsOfPod(gated)}
	}
	return seen{}
}

func isDelete(obj metav1.Object) bool {
	return obj.GetLabels()[jobs.LabelVerb] == string(contract.Delete)
}

// consult decides what to do for a Job. It asks all claims on what the caches show. Before something
// follows from what they say, it asks those again for which that is not enough: of 64 claims that need
// live facts, most passes end with one that waits.
func (l *Loop) consult(ctx context.Context, j seen) (Action, []answer) {
	answers := make([]answer, 0, len(j.uids))
	for _, uid := range j.uids {
		look := Cached
		if slices.Contains(j.asking, types.UID(uid)) {
			look = AsOwn
		}
		answers = append(answers, l.ask(ctx, j.Name, types.UID(uid), look))
	}
	for {
		action := Decide(j.Job, actionsOf(answers))
		unsure := firstUnsure(j.Name, action, answers)
		if action == Wait || unsure < 0 {
			return action, answers
		}
		answers[unsure] = l.ask(ctx, j.Name, answers[unsure].uid, Live)
	}
}

// firstUnsure returns which claim is to be asked again before an action, or -1. One is enough for what
// one of them decides.
func firstUnsure(job string, action Action, answers []answer) int {
	unsure := -1
	for i, one := range answers {
		switch {
		case saysOf(job, one.action) != action:
		case !one.isSure() && unsure < 0:
			unsure = i
		case one.isSure() && (action == Cancel || action == Note):
			return -1
		}
	}
	return unsure
}

// about returns the answers that say what is done, the first one of which is sure.
func about(job string, action Action, answers []answer) []answer {
	saying := slices.DeleteFunc(slices.Clone(answers), func(one answer) bool { return saysOf(job, one.action) != action })
	if i := slices.IndexFunc(saying, answer.isSure); i > 0 {
		saying[0], saying[i] = saying[i], saying[0]
	}
	return saying
}

// carryOut carries out an action for the claims that say so.
func (l *Loop) carryOut(ctx context.Context, action Action, job string, saying []answer) (time.Duration, error) {
	var after time.Duration
	var err error
	switch action {
	case Cancel, Unneeded:
		err = l.cancel(ctx, saying)
	case Record:
		err = l.record(ctx, saying)
	case Note:
		saying = saying[:1]
		err = l.Actor.Note(ctx, saying[0].o, saying[0].action)
	case Release:
		after, err = l.release(ctx, saying)
	case Open:
		err = l.open(ctx, saying)
	case Wait:
		return 0, nil
	}
	if patch.IsRefused(err) {
		l.refused(ctx, job, saying, err)
		return 0, nil
	}
	l.reportRepeated(saying, job, err)
	return after, err
}

// refused reports to each claim that a write was refused. Its own loop goes on with what does not depend
// on that write.
func (l *Loop) refused(ctx context.Context, job string, saying []answer, err error) {
	for _, one := range saying {
		l.Claims.Learn(one.uid, l.Actor.Refused(ctx, one.o, job, one.action, err))
		l.Claims.Enqueue(one.uid)
		job = "" // one event on the Job is enough
	}
}

// uidsOf returns the claims of a Job. One that has lost its labels and annotations names none.
func uidsOf(job *batchv1.Job) []string {
	return slices.DeleteFunc(slices.Clone(jobs.UIDs(job)), func(uid string) bool { return uid == "" })
}

// mayAct reports whether a Job itself shows that its claims may have something to say about it: its pod is
// gated, makes no progress or has ended. To ask 64 claims at each change of a Job that runs would take
// more time than all the rest.
func (j seen) mayAct(now time.Time) bool {
	switch {
	case runs.GatedPod(j.pods) != nil:
		return true
	case j.job == nil:
		return false
	case runs.HasEnded(j.job, j.pods, now):
		head := jobs.HeadOf(j.job)
		return head.Version == 0 || head.Unrecorded > 0 || runs.IsReplaced(j.job, j.pods) || IsToBeFreed(j.job, j.pods)
	}
	stuck, _ := runs.StuckOf(j.job, j.pods, nil, now)
	return stuck != nil || len(j.uids) == 1 && runs.HasSucceeded(j.pods)
}

// IsToBeFreed reports whether a pod of a Job has our finalizer, and every outcome is on record.
func IsToBeFreed(job *batchv1.Job, pods []*corev1.Pod) bool {
	return len(runs.ReleasablePods(pods)) > 0 && !jobs.IsNewer(job) && runs.AllRecorded(job)
}

// free frees the pods of a Job before its record is released: a Job that is being deleted vanishes with
// that. No claim has anything to say about it, and one that cannot be observed does not hold it up. It
// returns false while the API server refuses it.
func (l *Loop) free(ctx context.Context, job *batchv1.Job, pods []*corev1.Pod) (bool, error) {
	first := l.ask(ctx, job.Name, types.UID(jobs.UIDs(job)[0]), Cached)
	if first.err == nil && first.o.View.IsRefused(decide.RemovePodFinalizer{}) {
		return false, nil
	}
	err := l.Actor.Free(ctx, pods)
	if first.err != nil {
		return true, err
	}
	if patch.IsRefused(err) {
		l.Claims.Learn(first.uid, l.Actor.Refused(ctx, first.o, job.Name, decide.RemovePodFinalizer{}, err))
		return false, nil
	}
	l.reportRepeated([]answer{first}, job.Name, err)
	return true, err
}

// ask returns what a claim says about a Job. One that cannot be observed says nothing. Its error is
// reported on no claim: it was once reported on the first one of the batch, another tenant's
// (TestTheGrantsOfATenantHoldUpNoClaimOfItsBatch).
func (l *Loop) ask(ctx context.Context, job string, uid types.UID, look Look) answer {
	o, action, err := l.Claims.Say(ctx, uid, job, look)
	return answer{uid, o, action, look, err}
}

// errorOf returns why claims could not be observed, or nil.
func errorOf(answers []answer) (err error) {
	for _, one := range answers {
		err = errors.Join(err, one.err)
	}
	return err
}

func actionsOf(answers []answer) []decide.Action {
	out := make([]decide.Action, 0, len(answers))
	for _, one := range answers {
		out = append(out, one.action)
	}
	return out
}

// open lets the pod of a Job be scheduled, for the claims that need it.
func (l *Loop) open(ctx context.Context, needing []answer) error {
	members := make([]*observe.Observation, 0, len(needing))
	for _, one := range needing {
		members = append(members, one.o)
	}
	return l.Actor.Confirm(ctx, needing[0].action.(decide.Confirm).Run, members...)
}

// cancel deletes a Job. If it was gated, the next run of each claim comes later each time: while a cache
// is behind, it would be launched and cancelled again and again.
func (l *Loop) cancel(ctx context.Context, saying []answer) error {
	run := saying[0].action.(decide.Cancel).Run
	if run.State() == decide.RunGated {
		for _, uid := range run.UIDs {
			l.Claims.Cancelled(types.UID(uid))
		}
	}
	return l.Actor.Cancel(ctx, saying[0].o.Jobs[run.Name])
}

// record writes how a run ended.
func (l *Loop) record(ctx context.Context, saying []answer) error {
	all := make([]act.Ended, 0, len(saying))
	for _, one := range saying {
		all = append(all, act.Ended{O: one.o, Record: one.action.(decide.RecordOutcome)})
	}
	recorded, err := l.Actor.RecordOutcomes(ctx, all...)
	if recorded {
		for _, one := range all {
			l.Claims.Learn(one.O.UID, one.Learned())
		}
	}
	return err
}

// release writes that claims need their record no more.
func (l *Loop) release(ctx context.Context, saying []answer) (time.Duration, error) {
	all := make([]act.Released, 0, len(saying))
	for _, one := range saying {
		all = append(all, act.Released{O: one.o, Release: one.action.(decide.ReleaseRecord)})
	}
	return l.Actor.ReleaseRecords(ctx, all...)
}

// reportStuck reports why a Job makes no progress to the claims that have asked for its end. They wait for
// it while another claim needs it. The others' own loop reports it to them.
func (l *Loop) reportStuck(ctx context.Context, j seen, answers []answer) (err error) {
	for _, one := range answers {
		if saysOf(j.Name, one.action) != Unneeded || !slices.Contains(j.asking, one.uid) {
			continue
		}
		if run := one.action.(decide.Cancel).Run; run.Stuck != nil {
			_, failed := l.Actor.Do(ctx, one.o, decide.ReportProblem{Problem: *run.Stuck, Until: run.RecheckAt})
			err = errors.Join(err, failed)
		}
	}
	return err
}

// failuresReported is how many times in a row a Job has failed when that is reported, after some ten
// seconds.
const failuresReported = 8

// reportRepeated reports an error that comes again and again, see the controller's of that name.
func (l *Loop) reportRepeated(saying []answer, job string, err error) {
	if err == nil || patch.IsRefused(err) || errors.Is(err, context.Canceled) {
		return
	}
	seen := saying[0].o.Jobs[job]
	if seen == nil || l.Queue.NumRequeues(cluster.KeyOf(seen)) < failuresReported {
		return
	}
	for _, one := range saying {
		l.Actor.ReportFailed(one.o, job, err)
		job = ""
	}
}
