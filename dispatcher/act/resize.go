package act

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// setResizeStage writes how far a resize is: the size on the PV, everything else on the claim, by
// Kubernetes' own values.
func (a *Actor) setResizeStage(ctx context.Context, o *observe.Observation, d decide.SetResizeStage) (err error) {
	switch d.To {
	case decide.ResizeInProgress:
		err = a.beginResize(ctx, o)
	case decide.ResizeInfeasible:
		_, err = a.patchResize(ctx, o, corev1.PersistentVolumeClaimControllerResizeInfeasible,
			corev1.PersistentVolumeClaimControllerResizeError, infeasibleMessage(d.Run))
	case decide.ResizeLeftToNode:
		err = a.leaveToNode(ctx, o)
	case decide.ResizeNone:
		err = a.finishResize(ctx, o)
	case decide.ResizeStored:
		err = a.setPVCapacity(ctx, o, d.Run)
	case decide.ResizeRequested, decide.ResizeGrown, decide.ResizeDone: // observed, and never written
		err = fmt.Errorf("no way to write the stage %d of a resize", d.To)
	}
	return err
}

// beginResize says that the volume grows, and which refusal that replaces. The external-resizer
// takes every PV of its CSI driver (CanSupport in its pkg/resizer/csi_resizer.go). On claims of
// ours it refuses what it cannot expand, and this replaces it, again and again. The caches keep no
// managed fields, so it is not known who wrote the status. A run of ours may have, whose Job no
// longer exists.
func (a *Actor) beginResize(ctx context.Context, o *observe.Observation) error {
	wrote, err := a.patchResize(ctx, o, corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimResizing, "")
	if wrote && o.PV.Spec.CSI != nil && o.View.IsInfeasibleWithoutRun() {
		a.emit(o.Holder, o.PV, corev1.EventTypeWarning, reason.VolumeResizeFailed,
			"the claim's status said that the volume cannot have the size, and no run of the dispatcher has said so that is still on record. The "+
				"expansion continues. If a csi-resizer serves the volume's CSI driver, it may write such a status, since it takes every volume of its "+
				"driver. Remedy: in this case an administrator removes the container csi-resizer of that driver; kubectl get pvc "+o.Holder.Name+
				" -n "+o.Holder.Namespace+" -o yaml --show-managed-fields names the program that wrote the status")
	}
	return err
}

// infeasibleMessage returns the condition's message for a size that the volume cannot have.
func infeasibleMessage(run decide.Run) string {
	said := contract.ForClaim(run.Outcome.Message)
	if said == "" {
		said = "the storage refused this size"
	}
	return said + "; lower the request to a size above the claim's present capacity"
}

// patchResize writes on the claim how far its resize is, and reports whether it was written.
func (a *Actor) patchResize(ctx context.Context, o *observe.Observation, stage corev1.ClaimResourceStatus,
	condition corev1.PersistentVolumeClaimConditionType, message string,
) (bool, error) {
	return a.patchStatus(ctx, o, patch.Fields{
		"allocatedResources":        patch.Fields{"storage": allocated(o)},
		"allocatedResourceStatuses": patch.Fields{"storage": stage},
		"conditions": append(withoutResize(condition), patch.Fields{
			"type": condition, "status": corev1.ConditionTrue, "lastTransitionTime": metav1.NewTime(a.Clock.Now()), "message": message, "reason": nil,
		}),
	})
}

// withoutResize returns a strategic merge patch that removes the conditions that are about a resize,
// but for one. The others are not written, and not even kept in the caches: a kubelet may write
// megabytes into them (admitPVCStatus in Kubernetes' plugin/pkg/admission/noderestriction).
func withoutResize(but corev1.PersistentVolumeClaimConditionType) []patch.Fields {
	var out []patch.Fields
	for _, one := range []corev1.PersistentVolumeClaimConditionType{
		corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
		corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError,
	} {
		if one != but {
			out = append(out, patch.Fields{"type": one, "$patch": "delete"})
		}
	}
	return out
}

// patchStatus writes on the status of the claim of the volume. It returns false if the claim has
// changed since it was observed; then the watch enqueues it. The annotation is written with it, as
// Kubernetes' own controllers do.
func (a *Actor) patchStatus(ctx context.Context, o *observe.Observation, status patch.Fields) (bool, error) {
	claim := o.Holder
	change := patch.Annotate(map[string]string{contract.AnnResizer: a.Provisioner})
	change["status"] = status
	err := a.noted(patch.MergeElements(ctx, a.Client.CoreV1().PersistentVolumeClaims(claim.Namespace), claim, change, "status"))
	how, err := patch.EffectOf(err, "patch the status of the claim %s/%s", claim.Namespace, claim.Name)
	return how == patch.Written && err == nil, err
}

// leaveToNode leaves the file system to the kubelet, or reports that an administrator must expand
// it.
func (a *Actor) leaveToNode(ctx context.Context, o *observe.Observation) error {
	kind, note := corev1.EventTypeNormal, fmt.Sprintf("the volume has %s; the kubelet expands its file system when a pod uses it", o.PV.Spec.Capacity.Storage())
	if observe.NodeWorkOf(o.PV) == observe.NodeByHand {
		kind, note = corev1.EventTypeWarning, ByHandNote(o.PV).String()
	}
	note += resizeMessage(o)
	wrote, err := a.patchResize(ctx, o, corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimFileSystemResizePending, note)
	if wrote {
		a.emit(o.Holder, o.PV, kind, reason.FileSystemResizeRequired, note)
	}
	return err
}

// ByHandNote says that neither the kubelet nor the dispatcher expands the file system, and what the
// administrator does.
func ByHandNote(pv *corev1.PersistentVolume) reason.Note {
	size := pv.Spec.Capacity.Storage()
	return reason.Note{
		Cause: fmt.Sprintf("the volume has %s, but its file system is not expanded: the kubelet cannot expand a file system on this kind of volume", size),
		Remedy: fmt.Sprintf("an administrator must rescan the device on the claim's node, expand the file system there (resize2fs, xfs_growfs), and confirm it by: "+
			"kubectl annotate --overwrite pv %s %s=%s", pv.Name, contract.AnnFileSystem, size),
	}
}

// resizeMessage returns the image's message for the user after the newest expand, as long as its
// Job exists.
func resizeMessage(o *observe.Observation) string {
	e := o.View.Newest(contract.Expand)
	if e == nil || contract.ForClaim(e.Outcome.Message) == "" {
		return ""
	}
	return "; the image says: " + contract.ForClaim(e.Outcome.Message)
}

// allocated returns what is allocated for the volume: what is wanted, or what it has, if that is more. A
// user may have lowered the request since the volume has grown. A quota counts the larger of the request
// and of what is allocated (pvcEvaluator.Usage in Kubernetes'
// pkg/quota/v1/evaluator/core/persistent_volume_claims.go).
func allocated(o *observe.Observation) string {
	if has := o.PV.Spec.Capacity.Storage(); has.Cmp(o.Size) > 0 {
		return has.String()
	}
	return o.Size.String()
}

// finishResize sets the claim's capacity: nothing is left to do on any node.
func (a *Actor) finishResize(ctx context.Context, o *observe.Observation) error {
	size := o.PV.Spec.Capacity.Storage().String()
	status := patch.Fields{
		"capacity":           patch.Fields{"storage": size},
		"allocatedResources": patch.Fields{"storage": allocated(o)},
		"conditions":         withoutResize(""),
	}
	if o.Holder.Status.AllocatedResourceStatuses[corev1.ResourceStorage] != "" {
		status["allocatedResourceStatuses"] = patch.Fields{"storage": nil}
	}
	wrote, err := a.patchStatus(ctx, o, status)
	if wrote {
		a.emit(o.Holder, o.PV, corev1.EventTypeNormal, reason.VolumeResizeSuccessful, "the claim has "+size+resizeMessage(o))
	}
	return err
}

// emitResizing emits that a run that expands the volume was launched.
func (a *Actor) emitResizing(o *observe.Observation, job *batchv1.Job, note string) {
	a.emit(o.Holder, job, corev1.EventTypeNormal, reason.Resizing, fmt.Sprintf("expanding the volume to %s by the %s", o.Size.String(), note))
}
