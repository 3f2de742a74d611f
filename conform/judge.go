package conform

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// whyOtherPV returns in what a PersistentVolume is not what the skeleton of its claim says, empty if
// in nothing. The image may choose the reclaim policy Retain.
func whyOtherPV(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) string {
	if why := pvs.Mismatch(pv, claim); why != "" {
		return why
	}
	spec := pv.Spec
	switch ref := spec.ClaimRef; {
	case ref == nil || ref.UID != claim.UID:
		return "it has no claimRef with the UID of the claim"
	case spec.StorageClassName != class.Name:
		return fmt.Sprintf("it has the class %s, and the claim has %s", quote.Name(spec.StorageClassName), class.Name)
	case ptr.Deref(spec.VolumeMode, corev1.PersistentVolumeFilesystem) != ptr.Deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem):
		return "it has another volumeMode than the claim"
	case !slices.Equal(spec.MountOptions, class.MountOptions):
		return fmt.Sprintf("it has the mount options %q, and the class has %q", spec.MountOptions, class.MountOptions)
	case spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle:
		return "it has the reclaim policy Recycle"
	case pv.Annotations[contract.AnnRevision] == "":
		return "it lacks the annotation " + contract.AnnRevision
	default:
		return ""
	}
}

// whyOtherLine returns what is wrong with the entry of a list, empty if nothing is.
func whyOtherLine(v contract.Listed, claim *corev1.PersistentVolumeClaim, clusterUID string) string {
	for _, field := range []struct{ name, has, want string }{
		{"claimNamespace", v.Namespace, claim.Namespace},
		{"claimName", v.Name, claim.Name},
		{"storageClass", v.Class, ptr.Deref(claim.Spec.StorageClassName, "")},
		{"clusterUID", v.ClusterUID, clusterUID},
	} {
		if field.has != field.want {
			return fmt.Sprintf("the line of the claim has the %s %s, and not %s", field.name, quote.Name(field.has), field.want)
		}
	}
	if request := claim.Spec.Resources.Requests.Storage(); v.Size < request.Value() {
		return fmt.Sprintf("the line of the claim has the size %d, and the claim requests %d bytes", v.Size, request.Value())
	}
	return ""
}

// whyOtherSecrets returns what is wrong with the Secrets of a volume, empty if nothing is. The
// Secrets that were found have the label. One that the volume source names belongs to the volume if
// its name says so.
func whyOtherSecrets(pv *corev1.PersistentVolume, found map[types.NamespacedName]bool) string {
	for _, ref := range secretsOf(pv) {
		if isSecretOf(pv, ref.Name) && !found[ref] {
			return fmt.Sprintf("the Secret %s of the volume source lacks the label %s", ref, contract.LabelClaimUID)
		}
	}
	annotated := pv.Annotations[contract.AnnSecret]
	for _, secret := range slices.SortedFunc(maps.Keys(found), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }) {
		switch {
		case !isSecretOf(pv, secret.Name):
			return fmt.Sprintf("the Secret %s has another name than %s", secret, pv.Name)
		case annotated != secret.String():
			return fmt.Sprintf("the PersistentVolume does not name the Secret %s in its annotation %s", secret, contract.AnnSecret)
		}
	}
	if ns, name, named := strings.Cut(annotated, "/"); named && !found[types.NamespacedName{Namespace: ns, Name: name}] {
		return fmt.Sprintf("the Secret %s of the annotation %s does not exist, or lacks the label %s", quote.Name(annotated), contract.AnnSecret, contract.LabelClaimUID)
	}
	return ""
}

func isSecretOf(pv *corev1.PersistentVolume, name string) bool {
	return name == pv.Name || strings.HasPrefix(name, pv.Name+"-")
}

// secretsOf returns the Secrets that the volume source of a PersistentVolume names.
func secretsOf(pv *corev1.PersistentVolume) (out []types.NamespacedName) {
	add := func(ref *corev1.SecretReference) {
		if ref != nil {
			out = append(out, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		}
	}
	if s := pv.Spec.ISCSI; s != nil {
		add(s.SecretRef)
	}
	if s := pv.Spec.FlexVolume; s != nil {
		add(s.SecretRef)
	}
	if s := pv.Spec.CSI; s != nil {
		for _, ref := range []*corev1.SecretReference{s.ControllerPublishSecretRef, s.NodeStageSecretRef, s.NodePublishSecretRef, s.ControllerExpandSecretRef, s.NodeExpandSecretRef} {
			add(ref)
		}
	}
	return out
}
