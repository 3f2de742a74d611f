package controller_test

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

const (
	kcm            = "kube-controller-manager"
	annAsked       = "volume.kubernetes.io/storage-provisioner"
	annNode        = "volume.kubernetes.io/selected-node"
	protectsClaims = "kubernetes.io/pvc-protection"
	protectsPVs    = "kubernetes.io/pv-protection"
)

// volumes is the PV controller with its protections, as far as the dispatcher can tell.
func (w *world) volumes() {
	if w.noBinder {
		return
	}
	pvs := every[*corev1.PersistentVolume](w)
	for _, claim := range every[*corev1.PersistentVolumeClaim](w) {
		switch {
		case claim.DeletionTimestamp != nil && !w.mounted[claim.Name]:
			unfinalize(w, kcm, claim, protectsClaims)
		case claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil:
			w.bind(claim, pvs)
		}
	}
	for _, pv := range every[*corev1.PersistentVolume](w) {
		w.phase(pv)
	}
}

// bind binds a claim to the PV that Kubernetes' own rules choose, or asks the class's provisioner for one.
func (w *world) bind(claim *corev1.PersistentVolumeClaim, pvs []*corev1.PersistentVolume) {
	pvs = slices.DeleteFunc(slices.Clone(pvs), func(pv *corev1.PersistentVolume) bool { return !storagehelpers.CheckAccessModes(claim, pv) })
	pv, err := storagehelpers.FindMatchingVolume(claim, pvs, nil, nil, false, true)
	if err != nil {
		w.t.Fatal(err)
	}
	if pv != nil {
		bound, _, err := storagehelpers.GetBindVolumeToClaim(pv, claim)
		if err != nil {
			w.t.Fatal(err)
		}
		edit(w, kcm, pv, func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef, pv.Annotations = bound.Spec.ClaimRef, bound.Annotations
		})
		edit(w, kcm, claim, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeName, c.Status.Phase, c.Status.Capacity = pv.Name, corev1.ClaimBound, pv.Spec.Capacity
			annotate(c, "pv.kubernetes.io/bind-completed", "yes")
		})
		return
	}
	class := get[*storagev1.StorageClass](w, "", *claim.Spec.StorageClassName)
	if class != nil && waits(class) && claim.Annotations[annNode] == "" {
		w.choose(claim)
	}
	if class == nil || waits(class) && claim.Annotations[annNode] == "" || claim.Annotations[annAsked] == class.Provisioner {
		return
	}
	edit(w, kcm, claim, func(c *corev1.PersistentVolumeClaim) {
		annotate(c, annAsked, class.Provisioner)
		annotate(c, "volume.beta.kubernetes.io/storage-provisioner", class.Provisioner)
	})
}

func waits(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// phase follows the claim of a PV's claimRef.
func (w *world) phase(pv *corev1.PersistentVolume) {
	phase := corev1.VolumeAvailable
	if ref := pv.Spec.ClaimRef; ref != nil && ref.UID != "" {
		claim := get[*corev1.PersistentVolumeClaim](w, ref.Namespace, ref.Name)
		switch {
		case claim == nil || claim.UID != ref.UID, claim.Spec.VolumeName != "" && claim.Spec.VolumeName != pv.Name:
			phase = corev1.VolumeReleased
		case claim.Spec.VolumeName == pv.Name:
			phase = corev1.VolumeBound
		}
	}
	if phase == corev1.VolumeReleased && pv.Annotations[contract.AnnProvisionedBy] == "" &&
		pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		phase = corev1.VolumeFailed // it finds no plugin that would delete it
	}
	edit(w, kcm, pv, func(pv *corev1.PersistentVolume) { pv.Status.Phase = phase })
	if pv.DeletionTimestamp != nil && phase != corev1.VolumeBound && slices.Contains(pv.Finalizers, protectsPVs) {
		unfinalize(w, kcm, pv, protectsPVs)
	}
}

func annotate(obj object, key, value string) {
	all := obj.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	obj.SetAnnotations(all)
}
