package conform

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
)

// testRefuses creates a claim that cannot be provisioned, and another one after it.
func testRefuses(ctx context.Context, t *trial) error {
	refused, err := t.refusedClaim(ctx)
	if err != nil {
		return err
	}
	refused.untested = true // undo-refused tests it
	c, _, err := t.provisioned(ctx)
	if err != nil {
		return err
	}
	return t.remove(ctx, c)
}

// refusedClaim returns a claim that the image has refused.
func (t *trial) refusedClaim(ctx context.Context) (*claim, error) {
	p, said := t.ofRefuses()
	c, run, err := t.provoke(ctx, p)
	what := "a claim that cannot be provisioned"
	if p.Size != nil {
		what += ", of " + p.Size.String() + ","
	}
	switch {
	case err != nil:
		return nil, err
	case run.outcome.Verdict == contract.Done && !said:
		return nil, notProvoked("the image makes a volume of " + p.Size.String() + ": --provoke=FILE says what it refuses")
	case run.outcome.Verdict != contract.BadRequest && run.outcome.Verdict != contract.NoCapacity:
		return nil, brokenBy(run, fmt.Sprintf("%s ended with %s", what, run.outcome))
	case contract.ForClaim(run.outcome.Message) == "":
		return nil, brokenBy(run, "the message has no line that begins with "+contract.ClaimPrefix)
	default:
		return c, nil
	}
}

// testUndoRefused deletes a claim that was refused: a run may have created its volume before, so the
// dispatcher undoes it, with the request that the image has refused.
func testUndoRefused(ctx context.Context, t *trial) error {
	c, err := t.refusedClaim(ctx)
	if err != nil {
		return err
	}
	if err := t.remove(ctx, c); err != nil {
		return err
	}
	undos, err := t.runsOf(ctx, c.UID, contract.Delete)
	if i := slices.IndexFunc(undos, func(run ran) bool { return run.failed() && !isBusy(run.outcome) }); i >= 0 {
		return brokenBy(undos[i], fmt.Sprintf("the undo of the claim that was refused ended with %s", undos[i].outcome))
	}
	if err == nil && len(undos) == 0 {
		err = notTested("no undo was run")
	}
	return err
}

// refusedAs tests that a claim that is provoked by the promise's own provocation ends with a verdict.
func refusedAs(want contract.Verdict) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		_, err := t.provokedTo(ctx, want)
		return err
	}
}

// provokedTo provokes a claim, and returns its run if that ended with a verdict. Nothing is left of
// the claim.
func (t *trial) provokedTo(ctx context.Context, want contract.Verdict) (ran, error) {
	c, run, err := t.provoke(ctx, t.Provoke[t.name])
	if err != nil {
		return run, err
	}
	if run.outcome.Verdict != want {
		return run, otherThan(want, run)
	}
	return run, t.remove(ctx, c)
}

// otherThan says that a run has ended with another verdict than a promise wants.
func otherThan(want contract.Verdict, run ran) error {
	got := run.outcome
	return brokenBy(run, fmt.Sprintf("it ended with %s (%s), and not with %s", got, got.Verdict, want))
}

// testBadCredentials has a login refused for a claim, and then for the volume of another one: a
// delete that takes the refusal for "there is no such volume" loses it.
func testBadCredentials(ctx context.Context, t *trial) error {
	refused, err := t.provokedTo(ctx, contract.NoCredentials)
	if err != nil {
		return err
	}
	c, pv, err := t.provisioned(ctx)
	if err != nil {
		return err
	}
	// Until the run is recorded, its volume is in doubt under another revision.
	if _, err := t.endedRunsOf(ctx, c, contract.Provision); err != nil {
		return err
	}
	c.restore = t.naming(pv.Name, pv.Annotations[contract.AnnRevision])
	if err := t.naming(pv.Name, refused.revision)(ctx); err != nil {
		return err
	}
	if err := t.release(ctx, c); err != nil {
		return err
	}
	run, err := t.firstRun(ctx, c, contract.Delete, ran.ended)
	if err != nil {
		return err
	}
	if run.outcome.Verdict != contract.NoCredentials {
		return otherThan(contract.NoCredentials, run)
	}
	c.disturbed[run.job] = "a refused login"
	return t.remove(ctx, c)
}

// naming returns what names a config revision on a PersistentVolume.
func (r *Run) naming(pv, revision string) func(context.Context) error {
	return r.changing(pv, func(ctx context.Context, now *corev1.PersistentVolume) error {
		return admin.Move(ctx, r.Client, now, revision)
	})
}

// changing returns what changes a PersistentVolume, if there still is one.
func (r *Run) changing(
	pv string, change func(context.Context, *corev1.PersistentVolume) error,
) func(context.Context) error {
	return func(ctx context.Context) error {
		now, err := r.Client.CoreV1().PersistentVolumes().Get(ctx, pv, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("get the PersistentVolume of the test: %w", err)
		default:
			return change(ctx, now)
		}
	}
}
