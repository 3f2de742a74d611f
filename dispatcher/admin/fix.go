package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/audit"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Fix deletes volumes that stand for nothing, one after the other, so that a class has no more than one container beside its max-parallel. only names them;
// without a name it is all that may be deleted. say gets a line for each. Each is a Job of its own, which the dispatcher confirms only if still nothing stands
// for the volume, and which is on record: when the audit is killed, the dispatcher goes on with the Job that there is.
func (a *Auditor) Fix(ctx context.Context, l Look, only []string, say func(format string, args ...any)) error {
	var faults []error
	for _, f := range l.Found {
		if f.Kind != audit.VolumeLeft || len(only) > 0 && !slices.Contains(only, f.Volume.Volume) {
			continue
		}
		name, class := quote.Name(f.Volume.Volume), quote.Name(f.Class)
		message, err := a.fix(ctx, &l.State, f)
		if err != nil {
			faults = append(faults, fmt.Errorf("volume %s of the class %s: %w", name, class, err))
			say("volume %s of the class %s stays: %v", name, class, err)
			continue
		}
		say("volume %s of the class %s, of the claim %s, was deleted. %s", name, class, quote.Name(f.Volume.Namespace+"/"+f.Volume.Name), message)
	}
	for _, volume := range only {
		if !slices.ContainsFunc(l.Found, func(f audit.Finding) bool { return f.Kind == audit.VolumeLeft && f.Volume.Volume == volume }) {
			faults = append(faults, fmt.Errorf("volume %s is not one that stands for nothing", quote.Name(volume)))
		}
	}
	return errors.Join(faults...)
}

// fix deletes the volume of a finding. It returns what the image says.
func (a *Auditor) fix(ctx context.Context, s *audit.State, f audit.Finding) (string, error) {
	classes, err := a.Classes(ctx, f.Class)
	if err != nil {
		return "", err
	}
	if why := whyNotFixed(s, f, classes[0]); why != nil {
		return "", why
	}
	if err := a.lookAgain(ctx, f); err != nil {
		return "", err
	}
	job, err := a.create(ctx, f.UID, contract.Delete, func(number int) (*batchv1.Job, error) {
		return jobs.Fix(classes[0].Config, contract.Listed(f.Volume), number, a.Cluster, a.Provisioner)
	})
	if err != nil {
		return "", err
	}
	end, err := a.await(ctx, job, func(now seen) bool { return runs.RecordOf(now.job, f.UID).Recorded != nil })
	if err != nil {
		return "", err
	}
	switch out := runs.RecordOf(end.job, f.UID).Recorded; {
	case out.Verdict == contract.NotStarted && out.Reason == runs.Cancelled:
		return "", a.whyGone(ctx, job)
	case out.Verdict != contract.Done:
		return "", failed(job, *out)
	default:
		return quote.Line(out.Message), nil
	}
}

// whyNotFixed returns why the volume of a finding is not to be deleted, or nil.
func whyNotFixed(s *audit.State, f audit.Finding, c Class) error {
	switch {
	case !s.Bears(f.Volume):
		return errors.New("it does not bear this cluster's UID, and may be another's: delete it in the storage")
	case f.Volume.Class == "":
		return errors.New("the list does not say of which storage class it was, so it is not known whether that retains volumes: delete it in the storage")
	case f.Volume.Namespace == "" || f.Volume.Name == "":
		return errors.New("the list does not say of which claim it was, so it is not known whether that exists: delete it in the storage")
	case c.Fault != nil:
		return c.Fault
	case c.Config.Source.Reclaim == string(corev1.PersistentVolumeReclaimRetain):
		return errors.New("its class has the reclaimPolicy Retain, so that it may be kept on purpose: delete it in the storage")
	case !c.Config.Supports(contract.Delete):
		return fmt.Errorf("its config %s/%s does not have delete among its verbs", c.Config.Source.Namespace, c.Config.Source.Name)
	default:
		return nil
	}
}

// lookAgain looks a second time whether a volume stands for nothing, right before it is deleted.
func (a *Auditor) lookAgain(ctx context.Context, f audit.Finding) error {
	now, err := ReadState(ctx, a.Client, a.Objects, a.Provisioner, a.Clock.Now())
	if err != nil {
		return err
	}
	now.ClusterUID, now.Volumes = a.Cluster.UID, map[string][]audit.Volume{f.Class: {f.Volume}}
	if !slices.ContainsFunc(audit.Check(now), func(again audit.Finding) bool { return again.Kind == f.Kind && again.Volume == f.Volume }) {
		return errors.New("it stands for something by now: a claim, a PersistentVolume or a run of it has appeared")
	}
	return nil
}
