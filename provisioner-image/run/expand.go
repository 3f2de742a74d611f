package run

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// grown is the result of an expand: the size that the storage really gave, in bytes, and what has to
// happen before a pod sees it.
type grown struct {
	UID      string `json:"uid"`
	Code     int    `json:"code"`
	Capacity int64  `json:"capacity"`
	Pending  string `json:"pending,omitempty"`
}

// expand grows the volume and writes nothing to Kubernetes: the dispatcher does, by what is reported.
func (r *Runner) expand(ctx context.Context, task input.Task) (Report, error) {
	notes, err := pv.ReadRecord(task.PV, pv.Record{Hold: task.Volume.Hold})
	if err != nil {
		return Report{}, err
	}
	v, err := r.keeper.Grow(ctx, volume.Growth{
		UID:     task.Request.UID,
		ID:      notes.VolumeID,
		SizeGiB: task.Volume.SizeGiB,
		Hold:    notes.Hold,
	})
	if err != nil {
		return Report{}, err
	}
	r.log.InfoContext(ctx, "the volume has grown", "volume", v.ID, "gib", v.SizeGiB)
	pending := pendingGrowth(task.PV, notes.Hold.API)
	text, err := json.Marshal(grown{UID: task.Request.UID, Capacity: int64(v.SizeGiB) << 30, Pending: pending})
	if err != nil {
		return Report{}, fmt.Errorf("report the new size: %w", err)
	}
	message := string(text) + "\n"
	if pending != "" {
		message += contract.ClaimPrefix + pending + "\n"
	}
	return Report{Message: message}, nil
}

// pendingGrowth is honest about what the storage cannot do: the kubelet grows file systems only for
// CSI, FlexVolume and local volumes, and a node learns a disk's new size when it asks again.
func pendingGrowth(v *corev1.PersistentVolume, api volume.API) string {
	block := v.Spec.VolumeMode != nil && *v.Spec.VolumeMode == corev1.PersistentVolumeBlock
	switch {
	case v.Spec.FlexVolume != nil:
		return ""
	case v.Spec.CSI != nil:
		return "the disk has grown; the node plugin grows the file system when the pods that use the volume are started again"
	case block:
		return "the disk has grown; pods see the new size when they are started again on a node that has scanned it anew" + stale(api)
	default:
		return "the disk has grown, its file system has not: Kubernetes does not grow it on this kind of volume; stop the pods" +
			" that use it, start them again, and grow it on the node by resize2fs or xfs_growfs" + stale(api)
	}
}

// stale: without an attachment some storages keep the size in the export as it was.
func stale(api volume.API) string {
	if api != volume.Reserve {
		return ""
	}
	return "; some storages show the new size only after they were restarted, as the volume is held by attach-api reserve"
}
