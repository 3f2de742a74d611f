package conform

import (
	"cmp"
	"context"
	"errors"
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

func read(job *batchv1.Job, uid types.UID) ran {
	record := runs.RecordOf(job, string(uid))
	return ran{job: job.Name, number: record.Number, claims: max(len(record.UIDs), 1), held: record.Held, outcome: record.Recorded}
}

// attempts is how often a run may fail in a row before its promise is broken: the storage may be
// busy, which is no promise.
const attempts = 4

// hopeless returns an error if the runs of a verb say that no further one will do better. After a
// run that this test has disturbed the next one has to do, unless the storage was busy.
func (r *Run) hopeless(ctx context.Context, c *claim, verb contract.Verb) error {
	all, err := r.runsOf(ctx, c.UID, verb)
	if err != nil {
		return err
	}
	failed, disturbed := 0, ""
	for _, run := range all {
		if what := c.disturbed[run.job]; what != "" {
			disturbed = what
			continue
		}
		if !run.failed() {
			continue
		}
		if failed++; disturbed != "" && !isBusy(run.outcome) {
			return brokenBy(run, fmt.Sprintf("after %s the next run of %s ended with %s", disturbed, verb, run.outcome))
		}
		if failed >= attempts || isFinal(run.outcome.Verdict) {
			return brokenBy(run, fmt.Sprintf("attempt %d of %s ended with %s (%s)", failed, verb, run.outcome, run.outcome.Verdict))
		}
	}
	if n := len(all); verb == contract.Provision && n >= attempts && all[n-1].outcome != nil && all[n-1].outcome.Verdict == contract.Done && len(c.disturbed) == 0 {
		return brokenBy(all[n-1], fmt.Sprintf("%d runs ended with exit code 0, and the claim is not bound", n))
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

// errEnded is the error of a kill that came after the end of the run.
var errEnded = errors.New("the run had ended")

// kill ends a claim's run of a verb, a part of its usual time after it has got its node. The kubelet
// sends SIGTERM, and SIGKILL two seconds later, however short the grace period is.
func (t *trial) kill(ctx context.Context, c *claim, verb contract.Verb, part float64) error {
	before, err := t.runsOf(ctx, c.UID, verb)
	if err != nil {
		return err
	}
	var pod *corev1.Pod
	err = t.until(ctx, t.limit(), "a run of "+string(verb), func(ctx context.Context) (found bool, err error) {
		if pod, err = t.podOf(ctx, c, verb); pod != nil || err != nil {
			return pod != nil, err
		}
		now, err := t.runsOf(ctx, c.UID, verb)
		if err == nil && len(now) > len(before) && now[len(now)-1].outcome != nil {
			return true, errEnded
		}
		return false, err
	})
	if errors.Is(err, errEnded) {
		return nil
	}
	if err != nil {
		return err
	}
	after := time.Duration(part * float64(max(t.usual[verb], time.Second)))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.Clock.After(after):
	}
	c.disturbed[pod.Labels[batchv1.JobNameLabel]] = fmt.Sprintf("a kill %.1f s into the run", after.Seconds())
	return t.deleteOwn(t.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		Preconditions: uidOf(pod), GracePeriodSeconds: new(int64(1)),
	}), "the pod "+pod.Name)
}

// kills counts what kills have met.
type kills struct{ before, during, after int }

// count adds the kills of a claim's runs.
func (k *kills) count(ctx context.Context, r *Run, c *claim, verb contract.Verb) error {
	all, err := r.runsOf(ctx, c.UID, verb)
	for _, run := range all {
		if c.disturbed[run.job] == "" || run.outcome == nil {
			continue
		}
		switch {
		case run.outcome.Verdict == contract.Done:
			k.after++
		case run.outcome.ExitCode == nil:
			k.before++
		default:
			k.during++
		}
	}
	return err
}

// verdict returns an error if no kill has met a container at work.
func (k *kills) verdict(t *trial, of int, usual time.Duration) error {
	t.note = fmt.Sprintf("%d of %d kills met a container at work, %d came before its start", k.during, of, k.before)
	if k.during == 0 {
		return notTested("%s: a run takes %.1f s, and the kubelet lets it work on for two seconds", t.note, usual.Seconds())
	}
	return nil
}
