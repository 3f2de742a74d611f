package pvs

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
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
