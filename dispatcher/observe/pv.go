package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

func (b *Observer) observePV(ctx context.Context, reader cluster.Reader, o *Observation) (err error) {
	pv := o.PV
	if pv == nil {
		return nil
	}
	v := decide.Volume{
		Exists:       true,
		UID:          string(pv.UID),
		Unproven:     b.unproven(pv, string(o.UID)),
		Foreign:      pvs.OfAnotherProvisioner(pv.Annotations, b.Provisioner),
		Released:     pvs.IsReleased(pv),
		PolicyDelete: pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete,
		HasFinalizer: slices.Contains(pv.Finalizers, contract.FinalizerStorage),
		Terminating:  pv.DeletionTimestamp != nil,
		Unbound:      pvs.IsUnbound(pv),
		NotedRival:   pv.Annotations[jobs.AnnRival],
	}
	if pv.Annotations[contract.AnnClaimUID] == string(o.UID) && !v.Foreign {
		v.NeverBound = pvs.NeverBound(pv, o.Claim)
		if o.Claim == nil || o.Claim.Spec.VolumeName != "" {
			v.Unclaimed = pvs.Unclaimed(pv)
		} else {
			v.Mismatch = pvs.Mismatch(pv, o.Claim)
		}
	}
	v.HandedOver = pv.Status.Phase == corev1.VolumeFailed || pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID != o.UID
	if v.Released {
		b.observeAttachment(pv, &v)
		v.Orphaned, err = isOrphaned(ctx, reader, pv)
	}
	o.View.Volume = v
	return err
}

// isOrphaned reports whether the claim that a released PV names no longer exists or is bound elsewhere. A PV whose
// claimRef has no UID was passed on to the next claim of that name, whatever its phase still says.
func isOrphaned(ctx context.Context, reader cluster.Reader, pv *corev1.PersistentVolume) (bool, error) {
	ref := pv.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return false, nil
	}
	holder, err := reader.Claim(ctx, ref.UID, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	return holder == nil || holder.Spec.VolumeName != "" && holder.Spec.VolumeName != pv.Name, err
}

// unproven returns why a PV does not prove a run of ours, or nothing if it does. A PV of another provisioner is left
// to that provisioner's dispatcher. Two dispatchers would both expand one volume, and report on its claim.
func (b *Observer) unproven(pv *corev1.PersistentVolume, uid string) string {
	if pvs.OfAnotherProvisioner(pv.Annotations, b.Provisioner) {
		return fmt.Sprintf("the PersistentVolume %s is of the provisioner %s, by its annotation %s: this dispatcher serves %s",
			pv.Name, pv.Annotations[contract.AnnProvisionedBy], contract.AnnProvisionedBy, b.Provisioner)
	}
	return pvs.Unproven(pv, uid)
}
