package observe

import (
	"context"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// observeAttachment finds out which node has the volume of a released PV still attached, or which
// run clones it. No pod can begin to use a released PV, so the volume is only detached. But a cache
// that is behind may not show yet that it was attached before. No request would show it. The API
// server selects neither VolumeAttachments by their PV nor nodes by their volumes, and to list all
// of them for each delete is too much.
func (b *Observer) observeAttachment(ctx context.Context, reader cluster.Reader, pv *corev1.PersistentVolume, v *decide.Volume) (err error) {
	if v.Attached, err = b.clonedProblem(ctx, reader, pv); v.Attached != nil || err != nil {
		return err
	}
	if all := b.Caches.Attachments.By(cluster.ByPV, pv.Name); len(all) > 0 {
		v.Attached = attachedProblem(all[0].Spec.NodeName, "the VolumeAttachment "+all[0].Name)
	} else if node := b.Caches.NodeOf(pv); node != "" {
		v.Attached = attachedProblem(node, "its status")
	}
	if at := pv.Status.LastPhaseTransitionTime; at != nil && v.Attached != nil {
		v.Attached.From = at.Add(reportAttached)
	}
	return nil
}

// clonedProblem returns the problem that a run which clones the volume of a PV may be at work, or
// nil. An image that copies files once ended with success while the source was being deleted under
// it (TestSourceOfACloneStaysUntilTheCloneIsMade). Before a delete is launched, the Jobs show such
// a run. A Job may have been removed without its pod, or is not in the cache yet. So at the gate of
// the delete the pods prove it, as they prove that no other pod of its claims may run.
func (b *Observer) clonedProblem(ctx context.Context, reader cluster.Reader, pv *corev1.PersistentVolume) (*decide.Problem, error) {
	for _, job := range b.Caches.Jobs.By(cluster.BySourcePV, pv.Name) {
		if runs.IsNewerRecord(job) {
			return &decide.Problem{Reason: reason.RecordTooNew, Note: reason.WrittenByNewer(job.Namespace, job.Name), RetryAfter: recheckClone}, nil
		}
		if runs.HoldsSlot(job, b.Caches.PodsOf(job), b.Clock.Now()) || b.mayContinue(job) {
			return cloningProblem("Job", job), nil
		}
	}
	for _, pod := range b.Caches.Pods.By(cluster.BySourcePV, jobs.SourceKey(pv.Name)) {
		end, err := b.endOf(ctx, reader, pod)
		switch {
		case err != nil:
			return nil, err
		case end.mayRun && runs.IsLeftGated(pod):
			return cloningProblem("pod", pod).Remedyf("the pod has a scheduling gate, and its Job no longer exists: %s", runs.DeleteCommand(pod)), nil
		case end.mayRun:
			return cloningProblem("pod", pod), nil
		}
	}
	return nil, nil //nolint:nilnil // nothing clones it
}

func cloningProblem(kind string, by metav1.Object) *decide.Problem {
	p := decide.Problemf(reason.VolumeInUse, "the %s %s/%s clones the volume, so it is not deleted before the %s has ended", kind, by.GetNamespace(), by.GetName(), kind)
	p.From, p.RetryAfter = by.GetCreationTimestamp().Add(reportAttached), recheckClone
	return p
}

// observeSources notes that a gated run is not to start whose source is being deleted, or may have been
// in part.
func (b *Observer) observeSources(ctx context.Context, reader cluster.Reader, run *decide.Run, job *batchv1.Job) error {
	if !isFirst(run) {
		return nil
	}
	for _, source := range jobs.SourcesOf(job) {
		deleted, err := b.isBeingDeleted(ctx, reader, source)
		if err != nil {
			return err
		}
		run.Clones, run.Void = true, run.Void || deleted
	}
	return nil
}

// isBeingDeleted reports whether the volume of a PV is being deleted, or may have been. The cache
// that shows the pod of a clone shows that of every older delete. A younger delete sees the clone,
// and waits. When a delete may have ended, the PV says so. It is read live for the claim that
// confirms.
func (b *Observer) isBeingDeleted(ctx context.Context, reader cluster.Reader, name string) (bool, error) {
	for _, pod := range b.Caches.Pods.By(cluster.ByUID, strings.TrimPrefix(name, contract.PVName(""))) {
		end, err := b.endOf(ctx, reader, pod)
		if err != nil || end.mayRun && pod.Labels[jobs.LabelVerb] == string(contract.Delete) {
			return true, err
		}
	}
	pv, err := reader.PV(ctx, name)
	return pv == nil || pvs.IsReleased(pv) && pv.DeletionTimestamp != nil, err
}

// recheckClone is how soon a volume that is being cloned is looked at again.
const recheckClone = 15 * time.Second

// reportAttached is for how long an attachment of a released PV is nothing to report: kubelet and
// attacher need a while.
const reportAttached = time.Minute

// mayContinue reports whether a container of a Job may continue on a lost node past the deadline of its
// pod, which then uses no slot.
func (b *Observer) mayContinue(job *batchv1.Job) bool {
	for _, uid := range jobs.UIDs(job) {
		if r := jobs.RecordOf(job, uid).Recorded; r != nil && !r.MayRunUntil.IsZero() && runs.IsNodeLost(b.Caches.Nodes.Named(r.Node)) {
			return true
		}
	}
	return slices.ContainsFunc(b.Caches.PodsOf(job), func(pod *corev1.Pod) bool {
		may, until := runs.MayRun(pod, b.Clock.Now())
		return (may || !until.IsZero()) && runs.IsNodeLost(b.Caches.Nodes.Named(pod.Spec.NodeName))
	})
}

func attachedProblem(node, by string) *decide.Problem {
	return decide.Problemf(reason.VolumeInUse, "the volume is still attached to the node %s by %s, so it is not deleted", node, by).
		Remedyf("delete the pods that use it there; if the node is shut down for good, delete its Node object, or taint it: kubectl taint nodes %s %s=nodeshutdown:NoExecute",
			node, runs.TaintOutOfService)
}
