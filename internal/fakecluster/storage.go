package fakecluster

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// CreateVolume makes the claim's volume in the storage, once.
func (r *Run) CreateVolume() { r.cluster.Storage[r.Request.UID] = true }

// DeleteVolume takes the claim's volume out of the storage.
func (r *Run) DeleteVolume() {
	r.cluster.CheckUnused(r.Request.PVName)
	delete(r.cluster.Storage, r.Request.UID)
}

// CheckUnused checks that no claim needs the volume of a PV that is about to be deleted: none is
// bound to it, and none that names it could be.
func (c *Cluster) CheckUnused(pvName string) {
	pv, found := sharedOne[*corev1.PersistentVolume](c, "", pvName)
	for _, claim := range shared[*corev1.PersistentVolumeClaim](c) {
		if claim.Spec.VolumeName == pvName && (claim.Status.Phase == corev1.ClaimBound || found && pv.DeletionTimestamp == nil) {
			c.T.Errorf("the volume of the claim %s is deleted while it is in use", claim.Name)
		}
	}
}

// ExpandVolume makes the claim's volume as large as is asked for. A volume never shrinks, and one
// that was deleted does not grow.
func (r *Run) ExpandVolume() {
	c, uid := r.cluster, r.Request.UID
	if !c.Storage[uid] || r.Request.Size < c.sizes[uid] {
		c.T.Errorf("a volume of %d bytes is to have %d", c.sizes[uid], r.Request.Size)
	}
	c.sizes[uid] = r.Request.Size
}

// WritePV completes the PV skeleton and creates the PV, or finds it there.
func (r *Run) WritePV(changes ...func(*corev1.PersistentVolume)) {
	pv := r.PV.DeepCopy()
	pv.Spec.NFS = &corev1.NFSVolumeSource{Server: "10.10.2.4", Path: "/" + pv.Name}
	for _, change := range changes {
		change(pv)
	}
	s := r.cluster.Server
	err := s.locked(func() error { _, err := s.create("image", keyOf(pv), pv); return err })
	if err != nil && !apierrors.IsAlreadyExists(err) {
		r.cluster.T.Errorf("write the PV: %v", err)
	}
}
