package observe

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

func (b *Observer) observeDelete(ctx context.Context, reader cluster.Reader, o *Observation) error {
	o.Delete = b.Delete(o.UID, o.madeUnder())
	if p := tooLarge(o.PV); p != nil {
		o.Delete.Target.Problem = p
	}
	if o.Delete.Target.Problem == nil && (o.View.DeleteFails() || o.View.ExpandFails(o.Delete.Target.Revision)) {
		if present, ok := b.DeleteAtPresent(o.Delete); ok {
			o.Delete = present
		}
	}
	if o.PV != nil {
		o.VolumeNode = b.TopologyOf(pvs.NodeOf(o.PV))
	} else if made := o.View.MayHaveMade(); made != nil {
		o.VolumeNode = b.TopologyOf(made.Node)
	}
	err := b.observeMissingNode(ctx, reader, o)
	o.View.Delete = o.Delete.Target
	return err
}

// tooLarge returns the problem that no Job has room for a PV, or nil. The caches keep a part of it,
// and a delete that was given that part once left the volume
// (TestAPVThatIsTooLargeIsReportedAndNotDeleted).
func tooLarge(pv *corev1.PersistentVolume) *decide.Problem {
	if pv == nil || pv.Annotations[config.AnnCut] == "" {
		return nil
	}
	return decide.Problemf(reason.VolumeInDoubt, "the PersistentVolume %s is larger than %d KiB, so no Job can be given it: its volume is neither deleted nor expanded", pv.Name, contract.MaxFiles>>10).
		Remedyf("remove from it what made it so large, such as annotations")
}

// madeUnder returns the revision that made the volume, or the revision of the newest run that may
// have made one.
func (o *Observation) madeUnder() string {
	if o.PV != nil && o.View.Volume.Proven() && o.PV.Annotations[contract.AnnRevision] != "" {
		return o.PV.Annotations[contract.AnnRevision]
	}
	if p := o.View.MayHaveMade(); p != nil {
		return p.Revision
	}
	return ""
}
