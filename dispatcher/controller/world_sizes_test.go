package controller_test

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// expandable lets a class's claims ask for more.
func expandable(class *storagev1.StorageClass) { class.AllowVolumeExpansion = new(true) }

// growingClass is the class gold, whose image grows volumes.
func (w *world) growingClass(does func(*run) ending, keys ...string) {
	w.images[gold] = image{does: does}
	w.class("gold", corev1.PersistentVolumeReclaimDelete, expandable)
	w.account("true")
	w.config("gold", "gold", append([]string{"verbs", "provision,delete,expand"}, keys...)...)
}

// ask sets what the claim data requests.
func (w *world) ask(size string) {
	edit(w, user, w.now("data"), func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	})
}

// has tells whether the claim data has a size and says nothing of a growth any more.
func (w *world) has(size string) func() bool {
	return func() bool {
		s := w.now("data").Status
		return s.Capacity.Storage().String() == size && len(s.Conditions) == 0 && len(s.AllocatedResourceStatuses) == 0
	}
}

// says tells whether the claim data says how far its growth has come, and by one condition.
func (w *world) says(status corev1.ClaimResourceStatus, condition corev1.PersistentVolumeClaimConditionType) func() bool {
	return func() bool {
		s := w.now("data").Status
		return s.AllocatedResourceStatuses[corev1.ResourceStorage] == status && len(s.Conditions) == 1 && s.Conditions[0].Type == condition
	}
}

// growFileSystems is the kubelet's part of a growth, for volumes that pods use.
func (w *world) growFileSystems() {
	for _, claim := range every[*corev1.PersistentVolumeClaim](w) {
		pv := get[*corev1.PersistentVolume](w, "", claim.Spec.VolumeName)
		if !w.mounted[claim.Name] || pv == nil || pv.Spec.Local == nil && pv.Spec.CSI == nil && pv.Spec.FlexVolume == nil ||
			claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] != corev1.PersistentVolumeClaimNodeResizePending {
			continue
		}
		edit(w, kubelet, claim, func(c *corev1.PersistentVolumeClaim) {
			c.Status.Capacity, c.Status.Conditions, c.Status.AllocatedResourceStatuses = pv.Spec.Capacity, nil, nil
		})
	}
}

// grow makes the claim's volume as large as is asked for. The law: a volume never shrinks, and one that
// has gone does not grow.
func (r *run) grow() {
	if !r.w.storage[r.request.UID] || r.request.Size < r.w.sizes[r.request.UID] {
		r.w.t.Errorf("a volume of %d bytes is to have %d", r.w.sizes[r.request.UID], r.request.Size)
	}
	r.w.sizes[r.request.UID] = r.request.Size
}

// mustNeverShrink is the law over all that was written: no capacity ever goes down, neither a PV's nor a
// claim's, and nobody but its user changes what a claim asks for.
func (w *world) mustNeverShrink() {
	w.t.Helper()
	sizes, asked := map[types.UID]resource.Quantity{}, map[types.UID]resource.Quantity{}
	for _, c := range w.server.history() {
		var size resource.Quantity
		switch obj := c.now.(type) {
		case *corev1.PersistentVolume:
			size = *obj.Spec.Capacity.Storage()
		case *corev1.PersistentVolumeClaim:
			size = *obj.Status.Capacity.Storage()
			was, known := asked[obj.UID]
			asked[obj.UID] = *obj.Spec.Resources.Requests.Storage()
			if now := asked[obj.UID]; known && c.by != user && now.Cmp(was) != 0 {
				w.t.Errorf("%s makes %s ask for %s", c.by, c.name, now.String())
			}
		default:
			continue
		}
		if was := sizes[c.now.GetUID()]; size.Cmp(was) < 0 {
			w.t.Errorf("%s shrinks %s from %s to %s", c.by, c.name, was.String(), size.String())
		}
		sizes[c.now.GetUID()] = size
	}
}
