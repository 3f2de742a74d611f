package pvs

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// Skeleton returns the PV of a request, complete but for its volume source. The image writes all of
// it, because binding depends on spec.claimRef: a PV without it can be bound to any pending claim
// of the class, and one without provisioned-by becomes Failed instead of Released.
func Skeleton(r contract.Request, cfg config.Config, provisioner string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{
			Name: r.PVName,
			Annotations: map[string]string{
				contract.AnnProvisionedBy: provisioner,
				contract.AnnClaimUID:      r.UID,
				contract.AnnRevision:      cfg.Source.Revision(),
			},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(r.Size, resource.BinarySI)},
			StorageClassName:              r.Class,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimPolicy(r.ReclaimPolicy),
			MountOptions:                  r.MountOptions,
			VolumeMode:                    new(corev1.PersistentVolumeMode(r.VolumeMode)),
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: r.Namespace, Name: r.Name, UID: types.UID(r.UID),
			},
		},
	}
	for _, mode := range r.AccessModes {
		pv.Spec.AccessModes = append(pv.Spec.AccessModes, corev1.PersistentVolumeAccessMode(mode))
	}
	// The kubelet tells a CSI driver only the first mode (MountDevice in pkg/volume/csi): by
	// ReadWriteOnce ceph-csi refuses a second node. ReadWriteMany allows what all others allow.
	if i := slices.Index(pv.Spec.AccessModes, corev1.ReadWriteMany); i > 0 {
		pv.Spec.AccessModes[0], pv.Spec.AccessModes[i] = corev1.ReadWriteMany, pv.Spec.AccessModes[0]
	}
	if r.AttributesClass != "" {
		pv.Spec.VolumeAttributesClassName = new(r.AttributesClass)
	}
	// Also with policy Retain: until its run is on record the PV must not disappear unseen. A
	// volume that was kept, with its user's data, was once undone because its PV had been deleted
	// before the run's end was observed
	// (TestRecordBeforeStorageKnowsARetainedPVThatWasDeletedUnseen).
	pv.Finalizers = []string{contract.FinalizerStorage}
	return pv
}

// Unproven returns why a PV does not prove that the claim of this UID was provisioned, or nothing
// if it does.
func Unproven(pv *corev1.PersistentVolume, uid string) string {
	switch ref := pv.Spec.ClaimRef; {
	case pv.Annotations[contract.AnnClaimUID] != uid:
		return fmt.Sprintf("the PersistentVolume %s lacks the annotation %s: %s", pv.Name, contract.AnnClaimUID, uid)
	case ref == nil:
		return fmt.Sprintf("the PersistentVolume %s has no claimRef, and Kubernetes may bind any claim to it", pv.Name)
	default:
		return ""
	}
}
