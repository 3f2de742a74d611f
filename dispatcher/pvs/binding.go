package pvs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// Claimants returns who may claim a PV that names no claim by its UID: the claims of a class, by
// its label, or the claim that it names, as "namespace/name". A label has no slash, so the two
// differ. For almost all PVs it returns nothing.
func Claimants(pv *corev1.PersistentVolume) []string {
	switch ref := pv.Spec.ClaimRef; {
	case ref == nil:
		return []string{config.ClassLabel(pv.Spec.StorageClassName)}
	case ref.UID == "":
		return []string{ref.Namespace + "/" + ref.Name}
	default:
		return nil
	}
}

// ClaimantsOf returns as what a claim may claim PVs that name no claim by its UID.
func ClaimantsOf(claim *corev1.PersistentVolumeClaim) []string {
	return []string{config.ClassLabel(storagehelpers.GetPersistentVolumeClaimClass(claim)), claim.Namespace + "/" + claim.Name}
}

// MayGetOther reports whether the PV controller may bind a claim to one of these PVs, or to one
// that is created for it by hand, which a selector says. Which of the PVs fit, only that controller
// knows. The claim's own PV does not count. delayed says that the scheduler selects the claim's
// node: then only a PV that names the claim is bound to it.
func MayGetOther(claim *corev1.PersistentVolumeClaim, all []*corev1.PersistentVolume, delayed bool) bool {
	return claim.Spec.Selector != nil || slices.ContainsFunc(all, func(pv *corev1.PersistentVolume) bool {
		return pv.Name != contract.PVName(string(claim.UID)) && (!delayed || pv.Spec.ClaimRef != nil)
	})
}

// ProvisionerOf returns which provisioner is to make a volume for a claim, as the PV controller's
// annotations say. It is empty as long as that controller has not asked for one.
func ProvisionerOf(claim *corev1.PersistentVolumeClaim) string {
	if name := claim.Annotations[storagehelpers.AnnStorageProvisioner]; name != "" {
		return name
	}
	return claim.Annotations[storagehelpers.AnnBetaStorageProvisioner]
}

// WantsMore reports whether a bound claim asks for more than it has.
func WantsMore(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName != "" && claim.Spec.Resources.Requests.Storage().Cmp(*claim.Status.Capacity.Storage()) > 0
}

// IsAtRest reports whether nothing is to be done for a PV, as far as it shows itself: it is bound
// and not being deleted.
func IsAtRest(pv *corev1.PersistentVolume) bool {
	return pv.Status.Phase == corev1.VolumeBound && pv.DeletionTimestamp == nil
}

// IsAtRestClaim reports the same of a claim: it is bound and wants no larger volume.
func IsAtRestClaim(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimBound && claim.DeletionTimestamp == nil && !WantsMore(claim)
}
