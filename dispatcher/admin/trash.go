package admin

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// Empty makes the delete of a released PV's volume due now. The PV must be as it was observed.
func Empty(ctx context.Context, client kubernetes.Interface, pv *corev1.PersistentVolume) error {
	change := patch.Annotate(map[string]string{pvs.AnnEmpty: pvs.ReleasedSince(pv)})
	if _, err := patch.Merge(ctx, client.CoreV1().PersistentVolumes(), pv, change); err != nil {
		return fmt.Errorf("annotate the PersistentVolume %s: %w", pv.Name, err)
	}
	return nil
}

// Undelete gives the volume of a released PV to a new claim. First the PV is reserved for that claim,
// as it was observed: a delete that begins at the same time, or another undelete, meets a conflict.
// A call that was ended after that is completed by the same call.
func Undelete(ctx context.Context, client kubernetes.Interface, pv *corev1.PersistentVolume, to types.NamespacedName) error {
	claim, err := client.CoreV1().PersistentVolumeClaims(to.Namespace).Get(ctx, to.Name, metav1.GetOptions{})
	exists := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("get the claim %s: %w", to, err)
	}
	if exists && claim.Spec.VolumeName != pv.Name {
		return fmt.Errorf("the claim %s exists, and is not for this volume. A StatefulSet creates its claims again at once. "+
			"Name another claim by --to", to)
	}
	if err := reserve(ctx, client, pv, to); err != nil || exists {
		return err
	}
	if _, err := client.CoreV1().PersistentVolumeClaims(to.Namespace).Create(ctx, claimFor(pv, to), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the claim %s: %w. The PersistentVolume is reserved for it, and is not deleted: "+
			"run the same command again, or create that claim with spec.volumeName: %s", to, err, pv.Name)
	}
	return nil
}

// reserve lets only the claim of a name be bound to a PV.
func reserve(ctx context.Context, client kubernetes.Interface, pv *corev1.PersistentVolume, to types.NamespacedName) error {
	if isReserved, err := whyNotReleased(pv, to); err != nil || isReserved {
		return err
	}
	change := patch.Fields{"spec": patch.Fields{"claimRef": patch.Fields{
		"namespace": to.Namespace, "name": to.Name, "uid": nil, "resourceVersion": nil,
	}}}
	_, err := patch.Merge(ctx, client.CoreV1().PersistentVolumes(), pv, change)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("the PersistentVolume %s has changed meanwhile: its delete begins, or another undelete: %w", pv.Name, err)
	}
	if err != nil {
		return fmt.Errorf("reserve the PersistentVolume %s: %w", pv.Name, err)
	}
	return nil
}

// whyNotReleased returns why the volume of a PV cannot be given to a claim, or whether the PV is
// reserved for that already.
func whyNotReleased(pv *corev1.PersistentVolume, to types.NamespacedName) (isReserved bool, _ error) {
	ref := pv.Spec.ClaimRef
	switch {
	case pv.Annotations[contract.AnnClaimUID] == "":
		return false, errors.New("it was not made by flex-provisioner")
	case pv.DeletionTimestamp != nil:
		return false, errors.New("it is being deleted: no claim can be bound to it any more, and a Job may be deleting its volume")
	case ref != nil && ref.UID == "" && ref.Namespace == to.Namespace && ref.Name == to.Name:
		return true, nil
	case pv.Status.Phase != corev1.VolumeReleased || ref == nil || ref.UID == "":
		return false, fmt.Errorf("its phase is %s%s, and only a volume that is Released can be given to a claim", pv.Status.Phase, claimedBy(ref))
	default:
		return false, nil
	}
}

func claimedBy(ref *corev1.ObjectReference) string {
	if ref == nil {
		return ""
	}
	return fmt.Sprintf(", for the claim %s/%s", ref.Namespace, ref.Name)
}

// claimFor returns a claim that a PV fits exactly.
func claimFor(pv *corev1.PersistentVolume, to types.NamespacedName) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: to.Namespace, Name: to.Name},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: pv.Name, AccessModes: pv.Spec.AccessModes, VolumeMode: pv.Spec.VolumeMode,
			StorageClassName: new(pv.Spec.StorageClassName), VolumeAttributesClassName: pv.Spec.VolumeAttributesClassName,
			Resources: corev1.VolumeResourceRequirements{Requests: pv.Spec.Capacity},
		},
	}
}
