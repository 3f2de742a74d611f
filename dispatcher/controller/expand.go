package controller

import (
	"context"
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// Reasons of events of a growth. All but the last are those that users know from CSI drivers.
const (
	reasonResizing       = "Resizing"
	reasonResized        = "VolumeResizeSuccessful"
	reasonResizeFailed   = "VolumeResizeFailed"
	reasonFileSystemLeft = "FileSystemResizeRequired"
	reasonNotExpandable  = "ExpansionNotSupported"
)

// grow does one thing of a growth.
func (c *Controller) grow(ctx context.Context, o *observation, action decide.Action) error {
	switch a := action.(type) { //nolint:gochecksumtype // act sends these here, and has the others
	case decide.Begin:
		return c.begin(ctx, o)
	case decide.Refuse:
		return c.refuse(ctx, o, a.Run)
	case decide.SetPVCapacity:
		return c.growVolume(ctx, o, a.Run)
	case decide.HandOver:
		return c.handOver(ctx, o)
	case decide.Finish:
		return c.finish(ctx, o)
	default:
		return fmt.Errorf("no hand for the action %T", action)
	}
}

// begin says on the claim that its volume grows.
func (c *Controller) begin(ctx context.Context, o *observation) error {
	_, err := c.tellStage(ctx, o, corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimResizing, "")
	return err
}

// refuse says on the claim that its volume cannot grow so far.
func (c *Controller) refuse(ctx context.Context, o *observation, run decide.Run) error {
	_, err := c.tellStage(ctx, o, corev1.PersistentVolumeClaimControllerResizeInfeasible,
		corev1.PersistentVolumeClaimControllerResizeError, refusal(run))
	return err
}

// refusal is what a claim says of a size that its volume cannot have.
func refusal(run decide.Run) string {
	said := contract.ForClaim(run.Outcome.Message)
	if said == "" {
		said = "the storage refuses this size"
	}
	return said + "; the request can be lowered to a size above the claim's present capacity"
}

// tellStage writes on the claim how far its growth has come, and tells whether it has.
func (c *Controller) tellStage(ctx context.Context, o *observation, stage corev1.ClaimResourceStatus,
	condition corev1.PersistentVolumeClaimConditionType, message string,
) (bool, error) {
	return c.patchStatus(ctx, o, map[string]any{
		"allocatedResources":        map[string]any{"storage": o.size.String()},
		"allocatedResourceStatuses": map[string]any{"storage": stage},
		"conditions": append(otherConditions(o.holder), corev1.PersistentVolumeClaimCondition{
			Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.clock.Now()), Message: message,
		}),
	})
}

// otherConditions are those that tell nothing of a growth.
func otherConditions(claim *corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaimCondition {
	out := []corev1.PersistentVolumeClaimCondition{} // never nil: it replaces what was there
	for _, c := range claim.Status.Conditions {
		switch c.Type {
		case corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
			corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError:
		default:
			out = append(out, c)
		}
	}
	return out
}

// patchStatus writes on the status of the claim that the volume serves, and tells whether it has: on a
// claim that has changed since it was looked at, it does not, and the watch will bring it. The annotation
// goes with it, as Kubernetes' own controllers write it.
func (c *Controller) patchStatus(ctx context.Context, o *observation, status map[string]any) (bool, error) {
	claim := o.holder
	b, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid": claim.UID, "resourceVersion": claim.ResourceVersion,
			"annotations": map[string]any{contract.AnnResizer: c.opts.Provisioner},
		},
		"status": status,
	})
	if err != nil {
		return false, fmt.Errorf("encode the status of the claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	_, err = c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).
		Patch(ctx, claim.Name, types.MergePatchType, b, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("write the status of the claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return true, nil
}

// growVolume writes on the PV how large its volume has become, unless somebody has changed the PV
// meanwhile. The view has seen that it is more than what stands there.
func (c *Controller) growVolume(ctx context.Context, o *observation, run decide.Run) error {
	b, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": o.pv.UID, "resourceVersion": o.pv.ResourceVersion},
		"spec":     map[string]any{"capacity": map[string]any{"storage": run.Reached(run.Outcome).String()}},
	})
	if err != nil {
		return fmt.Errorf("encode the capacity of the PersistentVolume %s: %w", o.pv.Name, err)
	}
	_, err = c.client.CoreV1().PersistentVolumes().Patch(ctx, o.pv.Name, types.MergePatchType, b, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("write the capacity of the PersistentVolume %s: %w", o.pv.Name, err)
	}
	return nil
}

// handOver leaves the file system to the kubelet, or says that a person must grow it.
func (c *Controller) handOver(ctx context.Context, o *observation) error {
	kind, note := corev1.EventTypeNormal, fmt.Sprintf("the volume has %s; the kubelet grows its file system where a pod uses it", o.pv.Spec.Capacity.Storage())
	if o.view.Resize.Node == decide.NodeByHand {
		kind, note = corev1.EventTypeWarning, byHand(o.pv)
	}
	note += saidOfGrowth(o)
	wrote, err := c.tellStage(ctx, o, corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimFileSystemResizePending, note)
	if wrote {
		c.event(o.holder, o.pv, kind, reasonFileSystemLeft, note)
	}
	return err
}

// byHand is honest about a file system that nobody grows by himself, and names the remedy.
func byHand(pv *corev1.PersistentVolume) string {
	return fmt.Sprintf("the volume has %[1]s, but its file system is as small as before: the kubelet grows none on volumes of this kind. "+
		"Remedy: an administrator lets the claim's node rescan the device, grows the file system there (resize2fs, xfs_growfs), and says so by: "+
		"kubectl annotate --overwrite pv %[2]s %[3]s=%[1]s", pv.Spec.Capacity.Storage(), pv.Name, contract.AnnFileSystem)
}

// saidOfGrowth are the image's own words for the user after the newest expand, as long as its Job is there.
func saidOfGrowth(o *observation) string {
	e := o.view.Newest(contract.Expand)
	if e == nil || contract.ForClaim(e.Outcome.Message) == "" {
		return ""
	}
	return "; the image says: " + contract.ForClaim(e.Outcome.Message)
}

// finish gives the claim its size: no node has anything left to do.
func (c *Controller) finish(ctx context.Context, o *observation) error {
	size := o.pv.Spec.Capacity.Storage().String()
	status := map[string]any{
		"capacity":           map[string]any{"storage": size},
		"allocatedResources": map[string]any{"storage": o.size.String()},
		"conditions":         otherConditions(o.holder),
	}
	if statusOf(o.holder) != "" {
		status["allocatedResourceStatuses"] = map[string]any{"storage": nil}
	}
	wrote, err := c.patchStatus(ctx, o, status)
	if wrote {
		c.event(o.holder, o.pv, corev1.EventTypeNormal, reasonResized, "the claim has "+size+saidOfGrowth(o))
	}
	return err
}

// tellExpanding: a run that grows the volume has been launched.
func (c *Controller) tellExpanding(o *observation, job *batchv1.Job, note string) {
	c.event(o.holder, job, corev1.EventTypeNormal, reasonResizing, fmt.Sprintf("to %s by the %s", o.size.String(), note))
}
