package fakecluster

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// ForceDelete deletes a pod as kubectl delete --force does. It stays as long as it has finalizers.
func (c *Cluster) ForceDelete(pod *corev1.Pod) {
	Delete(c, Admin, pod)
	if now, exists := sharedOne[*corev1.Pod](c, pod.Namespace, pod.Name); exists && now.UID == pod.UID {
		Update(c, Admin, pod, func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = new(int64(0)) })
	}
}

// Vanish takes all finalizers off an object and deletes it, as people do with what is stuck in
// Terminating. A pod is deleted by force: no client learns whether its container has ended.
func Vanish[O Object](in In, obj O) {
	if at := keyOf(obj); !isSame(in, at, obj) {
		return
	}
	Update(in, Admin, obj, func(o O) { o.SetFinalizers(nil) })
	Delete(in, Admin, obj)
}

// isSame reports whether an object is still there.
func isSame(in In, at Key, obj Object) bool {
	s := in.self().Server
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.get(at)
	return err == nil && now.GetUID() == obj.GetUID()
}

// WriteByHand writes the PV of a claim's volume under its right name, as an administrator does who
// has found the volume in the storage: retained, and without any mark of the dispatcher's.
func (c *Cluster) WriteByHand(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClassName: *claim.Spec.StorageClassName,
		AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests.DeepCopy(),
		ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name},
	}}
	pv.Name = contract.PVName(string(claim.UID))
	pv.Spec.NFS = &corev1.NFSVolumeSource{Server: "10.10.2.4", Path: "/" + pv.Name}
	return Create(c, Admin, pv)
}

// AskForClone asks for a clone of a claim by the annotation that a user may add, or change, as long
// as the claim waits.
func (c *Cluster) AskForClone(claim *corev1.PersistentVolumeClaim, source string) {
	Update(c, User, claim, func(claim *corev1.PersistentVolumeClaim) { Annotate(claim, contract.AnnCloneRequest, source) })
}
