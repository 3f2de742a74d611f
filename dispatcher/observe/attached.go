package observe

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// observeAttachment finds out which node has the volume of a released PV still attached. The caches
// are enough: no pod can begin to use a released PV, so the volume is only detached.
func (b *Observer) observeAttachment(pv *corev1.PersistentVolume, v *decide.Volume) {
	if v.Attached = b.clonedProblem(pv); v.Attached != nil {
		return
	}
	if all := b.Caches.Attachments.By(cluster.ByPV, pv.Name); len(all) > 0 {
		v.Attached = attachedProblem(all[0].Spec.NodeName, "the VolumeAttachment "+all[0].Name)
	} else if node := b.Caches.NodeOf(pv); node != "" {
		v.Attached = attachedProblem(node, "its status")
	}
	if at := pv.Status.LastPhaseTransitionTime; at != nil && v.Attached != nil {
		v.Attached.From = at.Add(reportAttached)
	}
}

// clonedProblem is that a run which clones the volume of a PV may be at work, or nil. An image that
// copies files once ended with success while the source was being deleted under it.
func (b *Observer) clonedProblem(pv *corev1.PersistentVolume) *decide.Problem {
	for _, job := range b.Caches.Jobs.By(cluster.BySourcePV, pv.Name) {
		if runs.IsNewerRecord(job) {
			return &decide.Problem{Reason: reason.RecordTooNew, Note: reason.WrittenByNewer(job.Namespace, job.Name), RetryAfter: recheckClone}
		}
		if runs.HoldsSlot(job, b.Caches.PodsOf(job), b.Clock.Now()) || b.mayContinue(job) {
			p := decide.Problemf(reason.VolumeInUse, "the Job %s/%s clones the volume, so it is not deleted before the Job has ended", job.Namespace, job.Name)
			p.From, p.RetryAfter = job.CreationTimestamp.Add(reportAttached), recheckClone
			return p
		}
	}
	return nil
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
