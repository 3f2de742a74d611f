package observe

import (
	"cmp"
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
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

func (b *Observer) observePV(ctx context.Context, reader cluster.Reader, o *Observation) (err error) {
	pv := o.PV
	if pv == nil {
		return nil
	}
	v := decide.Volume{
		Exists:       true,
		UID:          string(pv.UID),
		Unproven:     b.unproven(o),
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
func (b *Observer) unproven(o *Observation) string {
	pv := o.PV
	if pvs.OfAnotherProvisioner(pv.Annotations, b.Provisioner) {
		return fmt.Sprintf("the PersistentVolume %s belongs to the provisioner %s by its annotation %s, and this dispatcher serves %s",
			pv.Name, quote.Name(pv.Annotations[contract.AnnProvisionedBy]), contract.AnnProvisionedBy, b.Provisioner)
	}
	return cmp.Or(pvs.Unproven(pv, string(o.UID)), o.otherRevision())
}

// otherRevision returns that a PV was written with another config revision than those under which its claim was served, or nothing. The run's pod writes the PV, and
// whoever has its token could have a volume deleted or grown with the login of another class. As long as no PV has proven the run its record is held, and says so.
// After that only administrators change the annotation. Jobs that are released say nothing: one that failed is kept longer than the one that followed it.
func (o *Observation) otherRevision() string {
	var served []string
	held := false
	for _, r := range o.View.Runs {
		if r.Verb == contract.Provision {
			served, held = append(served, r.Revision), held || r.Held
		}
	}
	if !held {
		return ""
	}
	slices.Sort(served)
	return pvs.OtherRevision(o.PV, slices.Compact(served))
}
