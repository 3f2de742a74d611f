package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Fix deletes volumes that stand for nothing, one after the other. only names them; without a name
// it is all that may be deleted. say gets a line for each.
//
// Each is deleted by a Job of its own. Why that is safe beside a dispatcher, another audit and
// whoever creates objects meanwhile:
//
//   - The Job has the name that the dispatcher would give to its next delete for the claim. So of several
//     that want to delete the volume under the present config, the API server lets one create its Job, and
//     the others wait or fail. The Job keeps its name until its pod no longer exists, which the audit
//     waits for before it deletes what another node has of the same claim.
//   - The Job's pod is gated. When it is there, all that may stand for the volume is read again from the
//     API server, and only then the gate is removed. Until the container has started it is read again
//     and again, and if something has appeared, the Job is deleted. A claim does not appear: no claim
//     has the UID of one that was deleted.
//   - If the audit is killed before the gate is removed, nothing runs, and the Job's deadline ends it. If
//     it is killed later, the delete that has started goes on. In both cases the Job expires, and the
//     audit can be run again: a volume that is still there is found again.
func (a *Auditor) Fix(ctx context.Context, l Look, only []string, say func(format string, args ...any)) error {
	chosen, faults := l.choose(only)
	for _, f := range chosen {
		name, class := quote.Name(f.Volume.Volume)+f.At(), quote.Name(f.Class)
		message, err := a.fix(ctx, &l.State, f)
		if err != nil {
			faults = append(faults, fmt.Errorf("volume %s of the class %s: %w", name, class, err))
			say("volume %s of the class %s stays: %s", name, class, quote.Line(err.Error()))
			continue
		}
		say("volume %s of the class %s, of the claim %s, was deleted. %s", name, class, quote.Name(f.Volume.Namespace+"/"+f.Volume.Name), quote.Line(message))
	}
	return errors.Join(faults...)
}

// choose returns the volumes that stand for nothing, or those of them with a name that is given.
func (l Look) choose(only []string) (chosen []audit.Finding, faults []error) {
	left := slices.DeleteFunc(slices.Clone(l.Found), func(f audit.Finding) bool { return f.Kind != audit.VolumeLeft })
	if len(only) == 0 {
		return left, nil
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(only))) {
		named := slices.DeleteFunc(slices.Clone(left), func(f audit.Finding) bool { return f.Volume.Volume != name })
		switch {
		case len(named) == 0:
			faults = append(faults, fmt.Errorf("volume %s is not an orphaned volume", quote.Name(name)))
		case len(named) == 1 || isOneClaims(named):
			chosen = append(chosen, named...)
		default:
			faults = append(faults, fmt.Errorf("%d volumes have the name %s. Remedy: list the storage of one class, with --storage=CLASS", len(named), quote.Name(name)))
		}
	}
	return chosen, faults
}

// isOneClaims reports whether volumes of one name are what several nodes have of one claim.
func isOneClaims(named []audit.Finding) bool {
	return !slices.ContainsFunc(named, func(f audit.Finding) bool {
		return f.Node == "" || f.UID != named[0].UID || f.Class != named[0].Class || f.ListedBy != named[0].ListedBy
	})
}

// fix deletes the volume of a finding. It returns what the image says.
func (a *Auditor) fix(ctx context.Context, s *audit.State, f audit.Finding) (string, error) {
	classes, err := a.Classes(ctx, f.Class)
	if err != nil {
		return "", err
	}
	if why := cmp.Or(whyNotFixed(s, f, classes[0]), whyNotReached(s, f, classes[0])); why != nil {
		return "", why
	}
	now, err := a.lookAgain(ctx, f)
	if err != nil {
		return "", err
	}
	job, err := a.deleteJob(classes[0], contract.Listed(f.Volume), s.NodeNamed(f.Node), nextNumber(now.Jobs, f.Volume.UID))
	if err != nil {
		return "", err
	}
	created, err := a.createNext(ctx, job)
	if apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("the Job %s/%s exists already: the dispatcher or another audit deletes the volume. Remedy: run the audit again a few minutes after that Job has ended",
			job.Namespace, job.Name)
	}
	if err != nil {
		return "", err
	}
	job = created
	defer a.remove(ctx, job)
	end, err := a.await(ctx, job, func(ctx context.Context) error {
		if err := a.whyChanged(ctx, classes[0]); err != nil {
			return err
		}
		_, err := a.lookAgain(ctx, f)
		return err
	})
	if err != nil {
		return "", err
	}
	return quote.Line(runs.Read(end.job, end.pods, a.Clock.Now()).Message), nil
}

// nextNumber returns the number of the dispatcher's next Job that deletes something of a claim.
func nextNumber(existing []*batchv1.Job, uid string) int {
	number := 1
	for _, job := range existing {
		if record := runs.RecordOf(job, uid); record.Verb == contract.Delete && slices.Contains(record.UIDs, uid) {
			number = max(number, record.Number+1)
		}
	}
	return number
}

// whyNotFixed returns why the volume of a finding is not to be deleted, or nil.
func whyNotFixed(s *audit.State, f audit.Finding, c Class) error {
	switch {
	case !s.Bears(f.Volume):
		return errors.New("it lacks this cluster's UID, and may belong to another cluster. Remedy: delete it in the storage")
	case f.Volume.Class == "":
		return errors.New("the list does not name its storage class, whose reclaim policy may be Retain. Remedy: delete it in the storage")
	case f.Volume.Class != f.ListedBy:
		return fmt.Errorf("the storage of the class %s lists it, but it belongs to another class. Remedy: list the storage of that class, with --storage=%s", f.ListedBy, quote.Name(f.Volume.Class))
	case f.Volume.Namespace == "" || f.Volume.Name == "":
		return errors.New("the list does not name its claim, which may exist. Remedy: delete it in the storage")
	case !audit.HasUID(f.Volume):
		return fmt.Errorf("the list gives %s as the UID of its claim, which is no UID of Kubernetes. Remedy: delete it in the storage", quote.Name(f.Volume.UID))
	case c.Fault != nil:
		return c.Fault
	case c.Config.Source.Reclaim == string(corev1.PersistentVolumeReclaimRetain):
		return errors.New("its class has the reclaimPolicy Retain, so it may be kept on purpose. Remedy: delete it in the storage")
	case !c.Config.Supports(contract.Delete):
		return fmt.Errorf("its config %s/%s does not have delete among its verbs", c.Config.Source.Namespace, c.Config.Source.Name)
	default:
		return nil
	}
}

// whyNotReached returns why no run of a class would reach the storage that has listed a volume, or nil.
func whyNotReached(s *audit.State, f audit.Finding, c Class) error {
	switch {
	case c.IsOnNodes() != (f.Node != ""):
		return errors.New("the run-on of its class has changed since it was listed. Remedy: run the audit again")
	case f.Node != "" && s.NodeNamed(f.Node) == nil:
		return fmt.Errorf("the node %s, which has listed it, no longer exists", f.Node)
	default:
		return nil
	}
}

// lookAgain looks again whether a volume stands for nothing. It returns what exists now.
func (a *Auditor) lookAgain(ctx context.Context, f audit.Finding) (audit.State, error) {
	now, err := a.ReadState(ctx)
	if err != nil {
		return now, err
	}
	if f.Node == "" {
		now.Volumes = map[string][]audit.Volume{f.ListedBy: {f.Volume}}
	} else { // a PV that has appeared stands for it on any node
		now.OnNodes = map[string]map[string][]audit.Volume{f.ListedBy: {f.Node: {f.Volume}}}
	}
	if !slices.ContainsFunc(audit.Check(now), func(again audit.Finding) bool { return again.Kind == f.Kind && again.Volume == f.Volume }) {
		return now, errors.New("it stands for something by now: a claim, a PersistentVolume or a run of it has appeared")
	}
	for _, pv := range slices.Concat(now.PVs, now.Others) { // cut.PV keeps no larger source
		if pv.Spec.PersistentVolumeSource == (corev1.PersistentVolumeSource{}) {
			return now, fmt.Errorf("the PersistentVolume %s may stand for it: its volume source is larger than %d KiB, and is not compared. Remedy: recreate that PersistentVolume with a shorter one, or delete the volume in the storage", pv.Name, contract.MaxFiles>>10)
		}
	}
	return now, nil
}
