package run

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// result is the result of an expand, with what has to happen before a pod sees the new size.
// Pending is for people only; the dispatcher ignores it.
type result struct {
	contract.Result
	Pending string `json:"pending,omitempty"`
}

// expand grows the volume. It writes nothing to Kubernetes: the dispatcher does, by the reported
// result.
func (r *Runner) expand(ctx context.Context, task input.Task) (Report, error) {
	if err := mapper.CheckGrowth(task.PV.Spec.PersistentVolumeSource); err != nil {
		return Report{}, err
	}
	record, err := pv.ReadRecord(task.PV, pv.Record{Access: task.Volume.Access})
	if err != nil {
		return Report{}, err
	}
	// When a Fibre Channel volume is exported again, some arrays cut the ports that the request does
	// not name (cinder/volume/drivers/dell_emc/powerstore/adapter.py, _modify_host_initiators), those
	// of nodes that joined later, and others give it another LUN for another list of ports.
	record.Access.Recorded = task.PV.Spec.FC != nil
	record.Access.Client = record.Access.Client.WithPorts(task.Volume.Access.Client)
	grown, err := r.keeper.Grow(ctx, volume.Growth{Named: named(task, record), SizeGiB: task.Volume.SizeGiB})
	if err != nil {
		return Report{}, err
	}
	r.log.InfoContext(ctx, "Volume was extended", "volume", grown.ID, "sizeGiB", grown.SizeGiB)
	pending := pendingGrowth(task.PV)
	done := result{Result: contract.NewResult(task.Request.UID, contract.ExitDone), Pending: pending}
	done.Capacity = contract.Bytes(int64(grown.SizeGiB) << 30)
	text, err := json.Marshal(done)
	if err != nil {
		return Report{}, fmt.Errorf("report the new size: %w", err)
	}
	message := string(text) + "\n"
	if pending != "" {
		message += contract.ClaimPrefix + pending + "\n"
	}
	return Report{Message: message}, nil
}

// named returns the volume that the record on a PV names.
func named(task input.Task, record pv.Record) volume.Named {
	return volume.Named{
		UID: task.Request.UID, ID: record.VolumeID, ClusterUID: task.Request.ClusterUID,
		Place: record.Place, Access: record.Access,
	}
}

// pendingGrowth returns what has to happen before a pod sees the new size: the kubelet grows file
// systems only for CSI, FlexVolume and local volumes, and a node learns a disk's new size only when
// it scans the disk again.
func pendingGrowth(v *corev1.PersistentVolume) string {
	block := v.Spec.VolumeMode != nil && *v.Spec.VolumeMode == corev1.PersistentVolumeBlock
	switch {
	case v.Spec.FlexVolume != nil:
		return ""
	case v.Spec.CSI != nil:
		return "the volume was expanded; the kubelet expands the file system when a pod uses the volume"
	case block:
		return "the volume was expanded; a pod sees the new size when it is restarted on a node that has rescanned the disk"
	default:
		return "the volume was expanded, but Kubernetes does not expand the file system on this kind of volume; restart the pods" +
			" that use it, then expand the file system on the node by resize2fs or xfs_growfs"
	}
}
