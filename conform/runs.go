package conform

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// ran is a run of a claim, as its Job records it.
type ran struct {
	job      string
	revision string // of its config, "namespace/name"
	number   int
	claims   int // how many claims its Job serves
	held     bool
	// outcome is nil until it is recorded.
	outcome *jobs.Outcome
}

// ended reports whether a run has ended by itself: it was done or has failed.
func (r ran) ended() bool {
	return r.failed() || r.outcome != nil && r.outcome.Verdict == contract.Done
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

// firstRun returns the first run of a verb for a claim of which ended says so, when there is one.
func (r *Run) firstRun(
	ctx context.Context, c *claim, verb contract.Verb, ended func(ran) bool,
) (first ran, err error) {
	err = r.until(ctx, r.limit(), "a run of the claim "+c.Name+" to end", func(ctx context.Context) (bool, error) {
		all, err := r.runsOf(ctx, c.UID, verb)
		i := slices.IndexFunc(all, ended)
		if i >= 0 {
			first = all[i]
		}
		return i >= 0, err
	})
	return first, err
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
	return ran{
		job: job.Name, revision: job.Annotations[contract.AnnRevision], number: record.Number,
		claims: max(len(record.UIDs), 1), held: record.Held, outcome: record.Recorded,
	}
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
	return &verdictError{verdict: Broken, note: note + ", Job " + run.job, output: run.outcome.Message}
}

// orBroken returns an error of waiting for a claim. If a run has ended, the promise is broken. Without
// one the cluster does not let it be tested, and a warning may say why.
func (r *Run) orBroken(ctx context.Context, c *claim, verb contract.Verb, err error) error {
	if err == nil || isVerdict(err) || ctx.Err() != nil {
		return err
	}
	all, _ := r.runsOf(ctx, c.UID, verb) // the error of waiting says more
	ended := slices.DeleteFunc(all, func(run ran) bool { return run.outcome == nil })
	if n := len(ended); n > 0 {
		return brokenBy(ended[n-1], err.Error()+"; a run ended with "+ended[n-1].outcome.String())
	}
	if last := r.warningOf(ctx, c); last != "" {
		err = fmt.Errorf("%w; the last warning about the claim: %s", err, last)
	}
	return err
}
