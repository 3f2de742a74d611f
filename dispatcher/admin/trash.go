package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	storagehelpers "k8s.io/component-helpers/storage/volume"

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

// IsReservedFor reports whether a PV waits for a claim of a name.
func IsReservedFor(pv *corev1.PersistentVolume, claim types.NamespacedName) bool {
	return pvs.IsReserved(pv) && ClaimOf(pv) == claim.String()
}

// ClaimOf returns the claim that the claimRef of a PV names, as "namespace/name".
func ClaimOf(pv *corev1.PersistentVolume) string {
	return pv.Spec.ClaimRef.Namespace + "/" + pv.Spec.ClaimRef.Name
}

// DeletedClaimOf returns the deleted claim that had the volume of a released or reserved PV.
func DeletedClaimOf(pv *corev1.PersistentVolume) string {
	if of := pv.Annotations[pvs.AnnUndeletes]; of != "" && pvs.IsReserved(pv) {
		return of
	}
	return ClaimOf(pv)
}

// Undelete gives the volume of a released PV to a new claim, if none of all PVs is in the way. First
// the PV is reserved for that claim, as it was observed: a delete that begins at the same time, or
// another undelete, meets a conflict. A call that was ended after that is completed by the same call.
// What may never be created is refused before: a PV that is reserved for it is kept without an end.
func Undelete(ctx context.Context, client kubernetes.Interface, pv *corev1.PersistentVolume, all []corev1.PersistentVolume, to types.NamespacedName) error {
	if err := cmp.Or(whyNotReleased(pv), whyTaken(pv, all, to)); err != nil {
		return err
	}
	claims := client.CoreV1().PersistentVolumeClaims(to.Namespace)
	exists, err := isThere(ctx, client, pv, to)
	if err == nil && !exists {
		if _, err = claims.Create(ctx, claimFor(pv, to), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			err = fmt.Errorf("create the claim %s: %w. Nothing was changed", to, err)
		}
	}
	if err != nil {
		return err
	}
	if err := reserve(ctx, client, pv, to); err != nil || exists {
		return err
	}
	if _, err := claims.Create(ctx, claimFor(pv, to), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the claim %s: %w. The PersistentVolume is reserved for it, and is not deleted: "+
			"run the same command again, or name another claim by --to", to, err)
	}
	return nil
}

// isThere reports whether the claim exists that is to have the volume of a PV, and can be bound to it.
func isThere(ctx context.Context, client kubernetes.Interface, pv *corev1.PersistentVolume, to types.NamespacedName) (bool, error) {
	claim, err := client.CoreV1().PersistentVolumeClaims(to.Namespace).Get(ctx, to.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("get the claim %s: %w", to, err)
	case claim.DeletionTimestamp != nil:
		return false, fmt.Errorf("the claim %s is being deleted. Wait until it no longer exists, or name another claim by --to", to)
	case claim.Spec.VolumeName != pv.Name:
		return false, fmt.Errorf("the claim %s exists, and is not for this volume. A StatefulSet creates its claims again at once. "+
			"Name another claim by --to", to)
	case metav1.HasAnnotation(claim.ObjectMeta, storagehelpers.AnnBindCompleted):
		// The volume controller binds it to no volume again: syncBoundClaim leaves it Lost.
		return false, fmt.Errorf("the claim %s exists, and has lost this volume: its annotation %s says that it was bound. "+
			"Delete it, or name another claim by --to", to, storagehelpers.AnnBindCompleted)
	default:
		return true, nil
	}
}

// reserve lets only the claim of a name be bound to a PV.
func reserve(ctx context.Context, client kubernetes.Interface, pv *corev1.PersistentVolume, to types.NamespacedName) error {
	if IsReservedFor(pv, to) {
		return nil
	}
	change := patch.Annotate(map[string]string{pvs.AnnUndeletes: DeletedClaimOf(pv)})
	change["spec"] = patch.Fields{"claimRef": patch.Fields{
		"namespace": to.Namespace, "name": to.Name, "uid": nil, "resourceVersion": nil,
	}}
	_, err := patch.Merge(ctx, client.CoreV1().PersistentVolumes(), pv, change)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("the PersistentVolume %s has changed meanwhile: its delete begins, or another undelete: %w", pv.Name, err)
	}
	if err != nil {
		return fmt.Errorf("reserve the PersistentVolume %s: %w", pv.Name, err)
	}
	return nil
}

// whyNotReleased returns why the volume of a PV cannot be given to any claim.
func whyNotReleased(pv *corev1.PersistentVolume) error {
	ref := pv.Spec.ClaimRef
	switch {
	case pv.Annotations[contract.AnnClaimUID] == "":
		return errors.New("it was not made by flex-provisioner")
	case pv.DeletionTimestamp != nil:
		return errors.New("it is being deleted: no claim can be bound to it any more, and a Job may be deleting its volume")
	case !pvs.IsReserved(pv) && (pv.Status.Phase != corev1.VolumeReleased || ref == nil || ref.UID == ""):
		return fmt.Errorf("its phase is %s%s, and only a volume that is Released can be given to a claim", pv.Status.Phase, claimedBy(ref))
	default:
		return nil
	}
}

// whyTaken returns which other PV has the same volume, or waits for the same claim.
func whyTaken(pv *corev1.PersistentVolume, all []corev1.PersistentVolume, to types.NamespacedName) error {
	for _, other := range all {
		if rival := pvs.WhyRival(&other, pv, pv.Annotations[contract.AnnClaimUID], time.Time{}); rival != "" {
			return errors.New(rival + ". Two claims would have one volume")
		}
		if other.Name != pv.Name && IsReservedFor(&other, to) {
			return fmt.Errorf("the PersistentVolume %s is reserved for the claim %s. "+
				"Complete that by kubectl flex undelete %s, or name another claim by --to", other.Name, to, other.Name)
		}
	}
	return nil
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
