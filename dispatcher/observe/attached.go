package observe

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// observeAttachment finds out which node has the volume of a released PV still attached. The caches
// are enough: no pod can begin to use a released PV, so the volume is only detached.
func (b *Observer) observeAttachment(pv *corev1.PersistentVolume, v *decide.Volume) {
	if all := b.Caches.Attachments.By(cluster.ByPV, pv.Name); len(all) > 0 {
		v.Attached = attachedProblem(all[0].Spec.NodeName, "the VolumeAttachment "+all[0].Name)
	} else if nodes := b.Caches.Nodes.By(cluster.ByVolume, string(pvs.NameOnNode(pv))); len(nodes) > 0 {
		v.Attached = attachedProblem(nodes[0].Name, "its status")
	}
	if at := pv.Status.LastPhaseTransitionTime; at != nil && v.Attached != nil {
		v.Attached.From = at.Add(reportAttached)
	}
}

// reportAttached is for how long an attachment of a released PV is nothing to report: kubelet and
// attacher need a while.
const reportAttached = time.Minute

func attachedProblem(node, by string) *decide.Problem {
	return decide.Problemf(reason.VolumeInUse, "the volume is still attached to the node %s by %s, so it is not deleted. Remedy: delete the pods that use it there; "+
		"if the node is shut down for good, delete its Node object, or taint it: kubectl taint nodes %s %s=nodeshutdown:NoExecute", node, by, node, runs.TaintOutOfService)
}
