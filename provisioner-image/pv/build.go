package pv

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Build completes the skeleton with the source, the record and the actual size of the volume. The
// PV of an adopted volume is retained, whatever the class says: the data on it are older than the
// claim.
func Build(skeleton *corev1.PersistentVolume, source corev1.PersistentVolumeSource, gib int, r Record) (*corev1.PersistentVolume, error) {
	annotations, err := r.annotations()
	if err != nil {
		return nil, err
	}
	pv := skeleton.DeepCopy()
	if pv.Annotations == nil {
		pv.Annotations = map[string]string{}
	}
	maps.Copy(pv.Annotations, annotations)
	pv.Spec.PersistentVolumeSource = source
	if pv.Spec.Capacity == nil {
		pv.Spec.Capacity = corev1.ResourceList{}
	}
	if r.Adopted {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	pv.Spec.Capacity[corev1.ResourceStorage] = *resource.NewQuantity(int64(gib)<<30, resource.BinarySI)
	return pv, nil
}

// RestrictToZones lets pods use the PV only on nodes of these zones.
func RestrictToZones(pv *corev1.PersistentVolume, zones ...string) {
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: zones,
			}},
		}},
	}}
}
