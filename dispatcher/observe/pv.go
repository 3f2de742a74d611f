package observe

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
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
	}
	if pv.Annotations[contract.AnnClaimUID] == string(o.UID) {
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

// observeRival looks for a PV of the UID under another name. Such a PV may be bound to the claim, and then what the
// image deletes by the UID is in use.
func (b *Observer) observeRival(ctx context.Context, reader cluster.Reader, o *Observation) error {
	others, err := b.otherPVs(ctx, reader, o)
	if err != nil {
		return err
	}
	since := o.mayHaveMadeSince()
	for _, pv := range others {
		// A rival that is deleted with its claim is no obstacle once the claim no longer exists.
		over := o.Claim == nil && pvs.IsReleased(pv) && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
		if rival := pvs.Rival(pv, string(o.UID), since); rival != "" && !over {
			o.View.Rival = rival
			return nil
		}
	}
	return nil
}

// otherPVs returns the PVs that carry the UID or name the claim, under another name than the UID's. The one that the
// claim is bound to must not be missed, so it is read by its name.
func (b *Observer) otherPVs(ctx context.Context, reader cluster.Reader, o *Observation) ([]*corev1.PersistentVolume, error) {
	out := b.Caches.PVsOfUID(string(o.UID))
	if o.Claim == nil || o.Claim.Spec.VolumeName == "" || o.Claim.Spec.VolumeName == contract.PVName(string(o.UID)) {
		return out, nil
	}
	pv, err := reader.PV(ctx, o.Claim.Spec.VolumeName)
	if pv != nil {
		out = append([]*corev1.PersistentVolume{pv}, out...)
	}
	return out, err
}

// mayHaveMadeSince returns when the first provision was created that may have made something, whatever its verdict; zero: none may have. A
// PV by hand for the volume of a run that failed is as much in use as one that the run wrote.
func (o *Observation) mayHaveMadeSince() time.Time {
	var since time.Time
	for _, r := range o.View.Runs {
		harmless := r.Unfinished && r.Unstarted || !r.Unfinished && r.NothingBefore && r.Outcome.Verdict.MadeNothing()
		if r.Verb == contract.Provision && !harmless && (since.IsZero() || r.Since.Before(since)) {
			since = r.Since
		}
	}
	return since
}
