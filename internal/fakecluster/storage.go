package fakecluster

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// CreateVolume makes the claim's volume in the storage, once: of what it was made when it was made,
// whatever a later run asks for.
func (r *Run) CreateVolume() {
	if !r.cluster.Storage[r.Request.UID] {
		r.cluster.Storage[r.Request.UID], r.cluster.Contents[r.Request.UID] = true, sourceOf(r.Request)
	}
}

// DeleteVolume takes the claim's volume out of the storage.
func (r *Run) DeleteVolume() {
	r.cluster.CheckUnused(r.Request.PVName)
	r.cluster.checkNoClone(r)
	delete(r.cluster.Storage, r.Request.UID)
	delete(r.cluster.Contents, r.Request.UID)
}

// sourceOf returns the UID of the claim that a request is to clone, or nothing.
func sourceOf(request contract.Request) string {
	if request.Source == nil {
		return ""
	}
	return request.Source.UID
}

// checkNoClone checks that no container clones the volume that is about to be deleted.
func (c *Cluster) checkNoClone(r *Run) {
	for _, k := range c.working() {
		for _, other := range k.runs {
			if !k.isOver() && other.Verb == contract.Provision && sourceOf(other.Request) == r.Request.UID {
				c.T.Errorf("the volume of %s is deleted while %s clones it for %s", r.Request.Name, k.Pod.Name, other.Request.Name)
			}
		}
	}
}

// checkContent checks that a volume was made from the source of the request whose PV shows it.
func (c *Cluster) checkContent(request contract.Request) {
	if is, want := c.Contents[request.UID], sourceOf(request); is != want {
		c.T.Errorf("the volume of %s was made from the claim %q, and its request asks for %q", request.Name, is, want)
	}
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
	r.cluster.checkContent(r.Request)
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
