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
	if pv.Annotations[contract.AnnClaimUID] == string(o.UID) {
		v.Mismatch, v.NeverBound = mismatchOf(pv, o.Claim)
	}
	v.HandedOver = pv.Status.Phase == corev1.VolumeFailed || pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID != o.UID
	if v.Released {
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

// mismatchOf returns why an unbound claim can never be bound to its PV, and whether no claim ever can have been bound
// to it. The latter is known without the claim if the PV has no claimRef.
func mismatchOf(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (mismatch string, neverBound bool) {
	switch {
	case claim != nil && claim.Spec.VolumeName == "":
		return pvs.Mismatch(pv, claim), pvs.NeverBound(pv, claim)
	case pv.Spec.ClaimRef == nil:
		return "", pvs.NeverBound(pv, nil)
	default:
		return "", false
	}
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
