package observe

import (
	"context"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

func (b *Observer) observeDelete(ctx context.Context, reader cluster.Reader, o *Observation) error {
	o.Delete = b.Delete(o.UID, o.madeUnder())
	if o.Delete.Target.Problem == nil && (o.View.DeleteFails() || o.View.ExpandFails(o.Delete.Target.Revision)) {
		if today, is := b.DeleteToday(o.UID, o.Delete); is {
			o.Delete = today
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
