package pvs

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/internal/quantity"
)

// AnnEmpty on a released PV makes the delete of its volume due, whatever keep-deleted says. Its value
// is since when the PV is released: it says nothing of a volume that was undeleted, and whose claim
// is deleted again.
const AnnEmpty = contract.Domain + "empty"

// ReleasedSince returns since when a PV has its phase, as the API server has written it.
func ReleasedSince(pv *corev1.PersistentVolume) string {
	if at := pv.Status.LastPhaseTransitionTime; at != nil {
		return at.UTC().Format(time.RFC3339)
	}
	return "unknown"
}

// IsEmptied reports whether an administrator wants the volume of a released PV to be deleted now.
func IsEmptied(pv *corev1.PersistentVolume) bool {
	return pv.Annotations[AnnEmpty] == ReleasedSince(pv)
}

// AnnUndeletes on a reserved PV names the deleted claim that had its volume, as "namespace/name".
// The claimRef names the new one.
const AnnUndeletes = contract.Domain + "undeletes"

// IsReserved reports whether a PV waits for a claim of the name that its claimRef has, as an undelete
// or an administrator has written it.
func IsReserved(pv *corev1.PersistentVolume) bool {
	ref := pv.Spec.ClaimRef
	return pv.Annotations[contract.AnnClaimUID] != "" && ref != nil && ref.UID == "" &&
		pv.Status.Phase != corev1.VolumeBound
}

// IsTrash reports whether the volume of a PV counts as one that waits for its delete, if its config
// keeps any. One that is being deleted does not, whoever has begun that: no claim gets it any more.
func IsTrash(pv *corev1.PersistentVolume) bool {
	ref := pv.Spec.ClaimRef
	return IsReleased(pv) && ref != nil && ref.UID != "" && ref.UID != NoClaim &&
		pv.DeletionTimestamp == nil && !IsEmptied(pv) &&
		pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		pv.Name == contract.PVName(pv.Annotations[contract.AnnClaimUID])
}

// TrashOfClass returns as what the released volumes of a class are found, TrashOf those of the class
// and the namespace of a PV. A label has no slash, so the two differ.
func TrashOfClass(class string) string { return config.ClassLabel(class) }

// TrashOf returns as what the released volumes of the class and the namespace of a PV are found.
func TrashOf(pv *corev1.PersistentVolume) string {
	return TrashOfClass(pv.Spec.StorageClassName) + "/" + pv.Spec.ClaimRef.Namespace
}

// compareRelease compares when two PVs were released. An unknown time is the oldest: Kubernetes writes
// it since 1.29. Of two that were released in the same second the UID decides, so that all dispatchers
// see the same order.
func compareRelease(a, b *corev1.PersistentVolume) int {
	one, other := a.Status.LastPhaseTransitionTime, b.Status.LastPhaseTransitionTime
	switch {
	case one == nil && other != nil:
		return -1
	case one != nil && other == nil:
		return 1
	case one != nil && !one.Equal(other):
		return one.Compare(other.Time)
	default:
		return cmp.Compare(a.UID, b.UID)
	}
}

// leastBound is how long a claim was bound for which a PV counts as one that some claim had.
const leastBound = time.Minute

// WasBound reports whether some claim had the volume of a released PV, for a minute. Whoever has a
// token by which PVs are written can write one that names a deleted claim of any namespace: the
// volume controller releases it at once (syncVolume). The API server writes both times.
func WasBound(pv *corev1.PersistentVolume) bool {
	at := pv.Status.LastPhaseTransitionTime
	return at == nil || at.Sub(pv.CreationTimestamp.Time) >= leastBound
}

// BeyondLimit returns of the volumes that wait those which are deleted before their time, so that
// at most a number of bytes waits, with 1 GiB for each smaller one. Those that were not bound are
// deleted first, then the oldest, and one that is larger than the limit itself makes no other go.
func BeyondLimit(trash []*corev1.PersistentVolume, limit int64) (due []*corev1.PersistentVolume) {
	trash = slices.SortedFunc(slices.Values(trash), func(a, b *corev1.PersistentVolume) int {
		switch {
		case WasBound(a) == WasBound(b):
			return compareRelease(b, a)
		case WasBound(a):
			return -1
		default:
			return 1
		}
	})
	left := limit
	for _, pv := range trash {
		switch size := max(BytesOf(pv), config.LeastCounted); {
		case size > limit:
			due = append(due, pv)
		case size > left:
			due, left = append(due, pv), -1
		default:
			left -= size
		}
	}
	return due
}

// BytesOf returns the capacity of a PV.
func BytesOf(pv *corev1.PersistentVolume) int64 {
	size := quantity.Bounded(*pv.Spec.Capacity.Storage())
	return size.Value()
}
