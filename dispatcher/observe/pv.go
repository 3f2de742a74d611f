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
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// observePV judges the PV of the UID.
func (b *Observer) observePV(ctx context.Context, reader cluster.Reader, o *Observation) error {
	pv := o.PV
	if pv == nil {
		return nil
	}
	v := &o.View.Volume
	v.UID, v.PolicyDelete = string(pv.UID), pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	v.HasFinalizer, v.Terminating = slices.Contains(pv.Finalizers, contract.FinalizerStorage), pv.DeletionTimestamp != nil
	v.State, v.Why = b.stateOf(pv, o.Claim, string(o.UID), o.servedUnder())
	if pvs.IsReleased(pv) {
		if err := b.observeAttachment(ctx, reader, pv, v); err != nil {
			return err
		}
	}
	v.Reserved = b.whyReserved(pv)
	orphaned, err := isOrphaned(ctx, reader, pv)
	v.Use = useOf(pv, o.Claim, orphaned)
	return err
}

// stateOf returns what a PV says of the provision for a claim, which may not exist any more. It
// also returns what is wrong with the PV. served are the config revisions of the runs, if one of
// them is on record.
func (b *Observer) stateOf(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, uid string, served []string) (decide.State, string) {
	if pvs.OfAnotherProvisioner(pv.Annotations, b.Provisioner) { // two dispatchers would both expand one volume, and report on its claim
		return decide.Foreign, fmt.Sprintf("the PersistentVolume %s belongs to the provisioner %s by its annotation %s, and this dispatcher serves %s",
			pv.Name, quote.Name(pv.Annotations[contract.AnnProvisionedBy]), contract.AnnProvisionedBy, b.Provisioner)
	}
	forged, mismatch := pvs.OtherRevision(pv, served), ""
	isUnbound := claim != nil && claim.Spec.VolumeName == ""
	if isUnbound && forged == "" && pv.Annotations[contract.AnnClaimUID] == uid {
		mismatch = pvs.Mismatch(pv, claim)
	}
	unproven := cmp.Or(pvs.Unproven(pv, uid), forged)
	switch {
	case mismatch != "":
		return decide.Mismatched, mismatch
	case unproven != "":
		return decide.Unproven, unproven
	case isUnbound:
		return decide.Fits, ""
	default:
		return decide.Fits, pvs.Unclaimed(pv)
	}
}

// useOf returns who may use the volume of a PV. The phase of a PV whose claim still exists, or that
// was passed on, is about to change.
func useOf(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, orphaned bool) decide.Use {
	switch {
	case pvs.NeverBound(pv, claim) && pv.Annotations[contract.AnnClaimUID] == string(claim.UID):
		return decide.NeverBound
	case orphaned && pvs.IsReleased(pv):
		return decide.Released
	case pvs.IsUnbound(pv):
		return decide.Unbound
	default:
		return decide.InUse
	}
}

// isOrphaned reports whether the claim that a released PV names no longer exists or is bound
// elsewhere. A PV whose claimRef has no UID was passed on to the next claim of that name, whatever
// its phase still says.
func isOrphaned(ctx context.Context, reader cluster.Reader, pv *corev1.PersistentVolume) (bool, error) {
	ref := pv.Spec.ClaimRef
	if !pvs.IsReleased(pv) || ref == nil || ref.UID == "" {
		return false, nil
	}
	holder, err := reader.Claim(ctx, ref.UID, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	return holder == nil || holder.Spec.VolumeName != "" && holder.Spec.VolumeName != pv.Name, err
}

// servedUnder returns the config revisions under which the claim was served, if one of its
// provisions is on record. A PV that names another revision was not written by these runs. The
// run's pod writes the PV, and whoever has its token could have a volume deleted or grown with the
// login of another class. As long as no PV has proven the run its record is held, and says so.
// After that only administrators change the annotation. Jobs that are released say nothing: some
// may have expired. The last one is that of the newest run, which is named in the remedy.
func (o *Observation) servedUnder() []string {
	var served []string
	held := false
	for _, r := range slices.SortedStableFunc(slices.Values(o.View.Runs), func(a, b decide.Run) int { return cmp.Compare(a.Number, b.Number) }) {
		if r.Verb == contract.Provision {
			served = append(slices.DeleteFunc(served, func(earlier string) bool { return earlier == r.Revision }), r.Revision)
			held = held || r.Held
		}
	}
	if !held {
		return nil
	}
	return served
}
