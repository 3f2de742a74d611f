package sim_test

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

var trashPeople = []act{
	{"an administrator changes how long deleted volumes are kept", func(w *world) string {
		return one(w, func(cm *corev1.ConfigMap) { w.setKept(cm, pickOne(w, []string{"0", "10s", "1h", "168h"})) })
	}},
	{"an administrator limits how many deleted volumes are kept", func(w *world) string {
		return one(w, func(cm *corev1.ConfigMap) {
			w.setKept(cm, "1h")
			w.setKey(cm, "keep-deleted-limit", pickOne(w, []string{"", "1Gi", "2Gi", "4Gi", "none"}))
		})
	}},
	{"an administrator undeletes a volume", (*world).undelete},
	{"an administrator empties the trash of a volume", func(w *world) string {
		pv := w.trashed()
		if pv == nil || admin.Empty(w.T.Context(), w.Server.Client(fakecluster.Admin), pv) != nil {
			return ""
		}
		return pv.Name
	}},
}

// setKept says for how long the deleted volumes of a config are kept, or takes the key away.
func (w *world) setKept(cm *corev1.ConfigMap, keep string) { w.setKey(cm, "keep-deleted", keep) }

// setKey sets a key of a config, or takes it away.
func (w *world) setKey(cm *corev1.ConfigMap, key, value string) {
	fakecluster.Update(w, fakecluster.Admin, cm, func(cm *corev1.ConfigMap) {
		cm.Data = maps.Clone(cm.Data)
		if delete(cm.Data, key); value != "" {
			cm.Data[key] = value
		}
	})
}

// emptyTrash lets all deletes be due.
func (w *world) emptyTrash() {
	for _, cm := range fakecluster.List[*corev1.ConfigMap](w) {
		w.setKept(cm, "")
		w.setKey(cm, "keep-deleted-limit", "")
	}
}

// trashed returns a PV with the policy Delete that is Released, or nil. If there is none, a user
// deletes the claim of one that is bound, whose config keeps it.
func (w *world) trashed() *corev1.PersistentVolume {
	if some := toBeDeleted(w, corev1.VolumeReleased); len(some) > 0 {
		return pickOne(w, some)
	}
	bound := toBeDeleted(w, corev1.VolumeBound)
	if len(bound) == 0 {
		return nil
	}
	pv := pickOne(w, bound)
	for _, cm := range fakecluster.List[*corev1.ConfigMap](w) {
		if cm.Name == pv.Spec.StorageClassName {
			w.setKept(cm, "1h")
		}
	}
	w.deleteClaimOf(pv)
	w.move("PV controller")
	pv = fakecluster.Get[*corev1.PersistentVolume](w, "", pv.Name)
	if pv.Status.Phase != corev1.VolumeReleased {
		return nil
	}
	return pv
}

func toBeDeleted(w *world, phase corev1.PersistentVolumePhase) (out []*corev1.PersistentVolume) {
	for _, pv := range pvsIn(w, phase) {
		if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			out = append(out, pv)
		}
	}
	return out
}

// undelete gives the volume of a deleted claim to a new one.
func (w *world) undelete() string {
	pv := w.trashed()
	if pv == nil {
		return ""
	}
	w.claims++
	heir := types.NamespacedName{Namespace: fakecluster.ClaimNamespace, Name: fmt.Sprintf("data-%d", w.claims)}
	var all []corev1.PersistentVolume
	for _, one := range fakecluster.List[*corev1.PersistentVolume](w) {
		all = append(all, *one)
	}
	if err := admin.Undelete(w.T.Context(), w.Server.Client(fakecluster.Admin), pv, all, heir); err != nil {
		return ""
	}
	return pv.Name + " for " + heir.Name
}
