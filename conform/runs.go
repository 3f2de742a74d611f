package conform

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// ran is a run of a claim, as its Job records it.
type ran struct {
	job    string
	number int
	claims int // how many claims its Job serves
	held   bool
	// outcome is nil until it is recorded.
	outcome *jobs.Outcome
}

// failed reports whether a run has ended, and was not done. What says nothing of the image does not
// count: a disruption, say.
func (r ran) failed() bool {
	return r.outcome != nil && r.outcome.Verdict != contract.Done && r.outcome.Verdict.Counted()
}

// runsOf returns the runs of a claim, of one verb or of all, the oldest first.
func (r *Run) runsOf(ctx context.Context, uid types.UID, verb contract.Verb) ([]ran, error) {
	list, err := r.Client.BatchV1().Jobs(r.Config.Source.Namespace).List(ctx, selectorOf(uid))
	if err != nil {
		return nil, fmt.Errorf("list the Jobs of a claim: %w", err)
	}
	var out []ran
	for i := range list.Items {
		if one := read(&list.Items[i], uid); verb == "" || list.Items[i].Labels[jobs.LabelVerb] == string(verb) {
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b ran) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.job, b.job)) })
	return out, nil
}

// endedRunsOf returns the runs of a claim of one verb when all of them have an outcome.
func (r *Run) endedRunsOf(ctx context.Context, c *claim, verb contract.Verb) (all []ran, err error) {
	return all, r.until(ctx, r.limit(), "the runs of the claim "+c.Name+" to end", func(ctx context.Context) (bool, error) {
		all, err = r.runsOf(ctx, c.UID, verb)
		return err == nil && !slices.ContainsFunc(all, func(run ran) bool { return run.outcome == nil }), err
	})
}

func read(job *batchv1.Job, uid types.UID) ran {
	record := runs.RecordOf(job, string(uid))
	return ran{job: job.Name, number: record.Number, claims: max(len(record.UIDs), 1), held: record.Held, outcome: record.Recorded}
}

// attempts is how often a run may fail in a row before its promise is broken: the storage may be
// busy, which is no promise.
const attempts = 4

// hopeless returns an error if the runs of a verb say that no further one will do better.
func (r *Run) hopeless(ctx context.Context, c *claim, verb contract.Verb) error {
	all, err := r.runsOf(ctx, c.UID, verb)
	if err != nil {
		return err
	}
	if last := lastWithoutPV(all); verb == contract.Provision && len(c.disturbed) == 0 && last != nil {
		return brokenBy(*last, fmt.Sprintf("%d runs ended with exit code 0, and the claim is not bound", len(all)))
	}
	return whyHopeless(all, c.disturbed, verb)
}

// lastWithoutPV returns the last of so many runs of a claim that is not bound that it will not be, nil if
// there are fewer, or they say themselves that they have failed.
func lastWithoutPV(all []ran) *ran {
	if n := len(all); n >= attempts && all[n-1].outcome != nil && all[n-1].outcome.Verdict == contract.Done {
		return &all[n-1]
	}
	return nil
}

// whyHopeless returns an error if one of the runs, the oldest first, breaks a promise. After a run
// that this test has disturbed the next one has to do, unless the storage was busy.
func whyHopeless(all []ran, disturbed map[string]string, verb contract.Verb) error {
	failed, before := 0, ""
	for _, run := range all {
		if what := disturbed[run.job]; what != "" {
			before = what
			continue
		}
		if !run.failed() {
			continue
		}
		failed++
		switch {
		case before != "" && !isBusy(run.outcome):
			return brokenBy(run, fmt.Sprintf("after %s the next run of %s ended with %s", before, verb, run.outcome))
		case failed >= attempts || isFinal(run.outcome.Verdict):
			return brokenBy(run, fmt.Sprintf("attempt %d of %s ended with %s (%s)", failed, verb, run.outcome, run.outcome.Verdict))
		}
	}
	return nil
}

// isFinal reports whether a verdict says that the same run will fail again.
func isFinal(v contract.Verdict) bool {
	return v == contract.BadConfig || v == contract.BadRequest || v == contract.NoCapacity || v == contract.NoCredentials
}

// isBusy reports whether a run says that it may be tried again, by one of the exit codes for that.
func isBusy(o *jobs.Outcome) bool {
	return o.ExitCode != nil && (*o.ExitCode == contract.ExitTempFail || *o.ExitCode == contract.ExitUnavailable)
}

func brokenBy(run ran, note string) error {
	return &brokenError{note: note + ", Job " + run.job, output: run.outcome.Message}
}

// orBroken returns an error of waiting for a claim. If a run has ended, the promise is broken;
// without one the cluster does not let it be tested.
func (r *Run) orBroken(ctx context.Context, c *claim, verb contract.Verb, err error) error {
	all, _ := r.runsOf(ctx, c.UID, verb) // the error of waiting says more
	i := slices.IndexFunc(all, func(run ran) bool { return run.outcome != nil })
	if isBroken(err) || ctx.Err() != nil || i < 0 {
		return err
	}
	last := all[len(all)-1]
	if last.outcome == nil {
		last = all[i]
	}
	return brokenBy(last, err.Error()+"; a run ended with "+last.outcome.String())
}

// podOf returns the pod of a claim's run of a verb that has a node, or nil.
func (r *Run) podOf(ctx context.Context, c *claim, verb contract.Verb) (*corev1.Pod, error) {
	list, err := r.Client.CoreV1().Pods(r.Config.Source.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: contract.LabelClaimUID + "=" + string(c.UID) + "," + jobs.LabelVerb + "=" + string(verb),
	})
	if err != nil {
		return nil, fmt.Errorf("list the pods of a claim: %w", err)
	}
	i := slices.IndexFunc(list.Items, func(pod corev1.Pod) bool {
		return pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && c.disturbed[pod.Labels[batchv1.JobNameLabel]] == ""
	})
	if i < 0 {
		return nil, nil
	}
	return &list.Items[i], nil
}

// measure finds how long the first run of a verb takes, from its node to its end: runs are killed
// within that time.
func (r *Run) measure(ctx context.Context, c *claim, verb contract.Verb) error {
	if r.usual[verb] > 0 {
		return nil
	}
	pod, err := r.podOf(ctx, c, verb)
	if err != nil || pod == nil {
		return err
	}
	began := r.Clock.Now()
	for r.Clock.Since(began) < r.limit() && !runs.HasContainerEnded(pod) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.Clock.After(lookEvery / 4):
		}
		if pod, err = r.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			break
		} else if err != nil {
			return err
		}
	}
	r.usual[verb] = r.Clock.Since(began)
	return nil
}

// atWork waits until a claim's run of a verb has a node, and returns its pod, or nil if a run has ended
// before it was seen.
func (t *trial) atWork(ctx context.Context, c *claim, verb contract.Verb) (pod *corev1.Pod, err error) {
	return pod, t.until(ctx, t.limit(), "a run of "+string(verb), func(ctx context.Context) (bool, error) {
		if pod, err = t.podOf(ctx, c, verb); pod != nil || err != nil {
			return pod != nil, err
		}
		all, err := t.runsOf(ctx, c.UID, verb)
		return slices.ContainsFunc(all, func(run ran) bool { return run.outcome != nil && c.disturbed[run.job] == "" && !c.known[run.job] }), err
	})
}

// toStart is how long a container may need to start before its pod is killed without.
const toStart = 30 * time.Second

// kill ends a claim's run of a verb, a part of its usual time after it has got its node, and not
// before its container was seen at work. The kubelet sends SIGTERM, and SIGKILL two seconds later,
// however short the grace period is.
func (t *trial) kill(ctx context.Context, c *claim, verb contract.Verb, part float64) error {
	pod, err := t.atWork(ctx, c, verb)
	if err != nil || pod == nil {
		return err
	}
	began := t.Clock.Now()
	wait := time.Duration(part * float64(t.usual[verb]))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.Clock.After(wait):
	}
	pods := t.Client.CoreV1().Pods(pod.Namespace)
	err = t.until(ctx, toStart, "the container to start", func(ctx context.Context) (bool, error) {
		now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && runs.HasStarted([]*corev1.Pod{now}), err
	})
	if err != nil && ctx.Err() != nil {
		return err
	}
	c.disturbed[pod.Labels[batchv1.JobNameLabel]] = fmt.Sprintf("a kill %.1f s after the start of a pod", t.Clock.Since(began).Seconds())
	return t.deleteOwn(pods.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: uidOf(pod), GracePeriodSeconds: new(int64(1))}), "the pod "+pod.Name)
}

// met returns how many kills of a claim's runs of a verb came while a container was at work.
func (t *trial) met(ctx context.Context, c *claim, verb contract.Verb) (n int, err error) {
	all, err := t.endedRunsOf(ctx, c, verb)
	for _, run := range all {
		if c.disturbed[run.job] != "" && run.outcome != nil && run.outcome.Verdict != contract.Done && run.outcome.ExitCode != nil {
			n++
		}
	}
	return n, err
}

// haveMet notes how many kills came while a container was at work, and returns an error if none did.
func (t *trial) haveMet(met, all int, verb contract.Verb) error {
	t.note = fmt.Sprintf("%d of %d kills came while the container was at work", met, all)
	if met == 0 {
		return notTested("%s: a run takes %.1f s, and the kubelet lets it work for two seconds after SIGTERM", t.note, t.usual[verb].Seconds())
	}
	return nil
}
