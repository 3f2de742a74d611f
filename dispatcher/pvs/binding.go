package pvs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// Claimants returns who may claim a PV that names no claim by its UID: the claims of a class, by its label, or the claim that it names, as
// "namespace/name". A label has no slash, so the two differ. For almost all PVs it returns nothing.
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

// Match returns one of these PVs that Kubernetes may bind to a claim, or nil. delayed says that the scheduler selects the claim's node: then
// only a PV that names the claim is bound to it. The claim's own PV does not count. Nor does a selector: no cache has it.
func Match(claim *corev1.PersistentVolumeClaim, all []*corev1.PersistentVolume, delayed bool) *corev1.PersistentVolume {
	var usable []*corev1.PersistentVolume
	for _, pv := range all {
		if pv.Name == contract.PVName(string(claim.UID)) || !storagehelpers.CheckAccessModes(claim, pv) {
			continue
		}
		if IsUnbound(pv) { // the PV controller is about to call it available
			available := *pv
			available.Status.Phase = corev1.VolumeAvailable
			pv = &available
		}
		usable = append(usable, pv)
	}
	match, err := storagehelpers.FindMatchingVolume(claim, usable, nil, nil, delayed, true)
	if err != nil {
		return nil // it would be about the claim's selector
	}
	return match
}

// MayGetOther reports whether the PV controller may bind a claim to one of these PVs, or to one that is created for it by hand, which a selector
// says. Which of the PVs fit, only that controller knows. The claim's own PV does not count. delayed is as for Match.
func MayGetOther(claim *corev1.PersistentVolumeClaim, all []*corev1.PersistentVolume, delayed bool) bool {
	return claim.Spec.Selector != nil || slices.ContainsFunc(all, func(pv *corev1.PersistentVolume) bool {
		return pv.Name != contract.PVName(string(claim.UID)) && (!delayed || pv.Spec.ClaimRef != nil)
	})
}

// ProvisionerOf returns which provisioner is to make a volume for a claim, as the PV controller's annotations say. It is empty as long as that controller
// has not asked for one.
func ProvisionerOf(claim *corev1.PersistentVolumeClaim) string {
	if name := claim.Annotations[storagehelpers.AnnStorageProvisioner]; name != "" {
		return name
	}
	return claim.Annotations[storagehelpers.AnnBetaStorageProvisioner]
}

// IsAskedFor reports whether the PV controller has looked for a PV for a claim, has found none, and has asked for a new one, which it says by two
// annotations. An admission policy may have stamped the newer one on the claim when it was created: that says nothing of other PVs.
func IsAskedFor(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[storagehelpers.AnnBetaStorageProvisioner] != ""
}
