package fakecluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// What kube-controller-manager writes, and its name in the history.
const (
	KubeControllerManager  = "kube-controller-manager"
	AnnStorageProvisioner  = "volume.kubernetes.io/storage-provisioner"
	AnnSelectedNode        = "volume.kubernetes.io/selected-node"
	FinalizerPVCProtection = "kubernetes.io/pvc-protection"
	FinalizerPVProtection  = "kubernetes.io/pv-protection"

	// AnnBindCompleted says that a claim was bound, also if it names no volume any more.
	AnnBindCompleted = "pv.kubernetes.io/bind-completed"

	// AnnBetaStorageProvisioner is the older name of AnnStorageProvisioner. Both are written.
	AnnBetaStorageProvisioner = "volume.beta.kubernetes.io/storage-provisioner"
)

// runPVController is the PV controller with both protection controllers, as far as the dispatcher
// can tell.
func (c *Cluster) runPVController() {
	if c.BinderDown {
		return
	}
	pvs := shared[*corev1.PersistentVolume](c)
	for _, claim := range shared[*corev1.PersistentVolumeClaim](c) {
		if c.syncClaim(claim, pvs) {
			pvs = shared[*corev1.PersistentVolume](c)
		}
	}
	for _, pv := range shared[*corev1.PersistentVolume](c) {
		c.setPhase(pv)
	}
}

// syncClaim does what is due for a claim, and reports whether it has bound it to one of the PVs.
func (c *Cluster) syncClaim(claim *corev1.PersistentVolumeClaim, pvs []*corev1.PersistentVolume) bool {
	switch {
	case claim.DeletionTimestamp != nil:
		if !c.Mounted[claim.Name] {
			c.unprotect(claim, FinalizerPVCProtection)
		}
	case claim.Spec.VolumeName == "" && claim.Annotations[AnnBindCompleted] != "":
		set(c, KubeControllerManager, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Status.Phase = corev1.ClaimLost })
	case claim.Spec.VolumeName == "":
		return c.due(claim.CreationTimestamp.Add(c.BinderLooksAfter)) && c.bindClaim(claim, pvs)
	case claim.Status.Phase != corev1.ClaimBound:
		c.bindToNamed(claim)
	}
	return false
}

func (c *Cluster) unprotect(obj Object, finalizer string) {
	if slices.Contains(obj.GetFinalizers(), finalizer) {
		set(c, KubeControllerManager, obj, func(o Object) { withoutFinalizer(o, finalizer) })
	}
}

// bindClaim binds a claim to the PV that Kubernetes' own rules choose, or asks the class's
// provisioner for one. It reports whether it has bound the claim.
func (c *Cluster) bindClaim(claim *corev1.PersistentVolumeClaim, pvs []*corev1.PersistentVolume) bool {
	pvs = slices.DeleteFunc(slices.Clone(pvs), func(pv *corev1.PersistentVolume) bool { return !storagehelpers.CheckAccessModes(claim, pv) })
	pv, err := storagehelpers.FindMatchingVolume(claim, pvs, nil, nil, false, true)
	switch {
	case err != nil:
		c.T.Fatal(err)
	case pv != nil:
		c.bind(claim, pv)
	default:
		c.askProvisioner(claim)
	}
	return pv != nil
}

// bindToNamed binds a claim to the PV that it names, unless that is another's. One that names the claim
// may be terminating, and need not fit (syncUnboundClaim).
func (c *Cluster) bindToNamed(claim *corev1.PersistentVolumeClaim) {
	pv, found := sharedOne[*corev1.PersistentVolume](c, "", claim.Spec.VolumeName)
	if found && (pv.DeletionTimestamp == nil && pv.Spec.ClaimRef == nil || storagehelpers.IsVolumeBoundToClaim(pv, claim)) {
		c.bind(claim, pv)
	}
}

func (c *Cluster) bind(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
	bound, _, err := storagehelpers.GetBindVolumeToClaim(pv, claim)
	if err != nil {
		c.T.Fatal(err)
	}
	set(c, KubeControllerManager, pv, func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef, pv.Annotations = bound.Spec.ClaimRef, bound.Annotations
	})
	set(c, KubeControllerManager, claim, func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.VolumeName, claim.Status.Phase, claim.Status.Capacity = pv.Name, corev1.ClaimBound, pv.Spec.Capacity.DeepCopy()
		Annotate(claim, AnnBindCompleted, "yes")
	})
}

func (c *Cluster) askProvisioner(claim *corev1.PersistentVolumeClaim) {
	class, found := sharedOne[*storagev1.StorageClass](c, "", *claim.Spec.StorageClassName)
	switch {
	case !found:
		return
	case !waitsForConsumer(class):
	case claim.Annotations[AnnSelectedNode] == "":
		c.selectNode(claim)
		return
	}
	if claim.Annotations[AnnStorageProvisioner] == class.Provisioner {
		return
	}
	if !c.mayAnnotate(claim) {
		return
	}
	set(c, KubeControllerManager, claim, func(claim *corev1.PersistentVolumeClaim) {
		Annotate(claim, AnnStorageProvisioner, class.Provisioner)
		Annotate(claim, AnnBetaStorageProvisioner, class.Provisioner)
	})
}

// asked is a claim for which the PV controller is about to ask for a volume: which version of it,
// and when it was looked at.
type asked struct {
	version string
	at      time.Time
}

// mayAnnotate reports whether the PV controller's annotation of a claim is due. If the claim has
// changed since it looked, the API server refuses its write, and it says so to the claim's user.
func (c *Cluster) mayAnnotate(claim *corev1.PersistentVolumeClaim) bool {
	if c.AnnotatesAfter == 0 {
		return true
	}
	looked, waits := c.asked[claim.UID]
	if !waits {
		looked = asked{claim.ResourceVersion, c.clock.Now()}
		c.asked[claim.UID] = looked
	}
	if !c.due(looked.at.Add(c.AnnotatesAfter)) {
		return false
	}
	delete(c.asked, claim.UID)
	if looked.version != claim.ResourceVersion {
		c.T.Errorf("the PV controller says ProvisioningFailed of the claim %s, since another client has written on it", claim.Name)
	}
	return true
}

func waitsForConsumer(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// setPhase sets a PV's phase by the claim of its claimRef.
func (c *Cluster) setPhase(pv *corev1.PersistentVolume) {
	if c.isSpare(pv) {
		set(c, KubeControllerManager, pv, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "" })
		pv, _ = sharedOne[*corev1.PersistentVolume](c, "", pv.Name)
	}
	phase := c.phaseOf(pv)
	if pv.Status.Phase != phase {
		set(c, KubeControllerManager, pv, func(pv *corev1.PersistentVolume) {
			pv.Status.Phase, pv.Status.LastPhaseTransitionTime = phase, new(metav1.NewTime(c.clock.Now()))
		})
	}
	if pv.DeletionTimestamp != nil && phase != corev1.VolumeBound {
		c.unprotect(pv, FinalizerPVProtection)
	}
}

// isSpare reports whether the claim of a PV was bound to another, and the PV is not one to be
// deleted: the PV controller then lets it be for any claim of that name.
func (c *Cluster) isSpare(pv *corev1.PersistentVolume) bool {
	ref := pv.Spec.ClaimRef
	if ref == nil || ref.UID == "" || pv.Annotations[contract.AnnProvisionedBy] != "" && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return false
	}
	claim, found := sharedOne[*corev1.PersistentVolumeClaim](c, ref.Namespace, ref.Name)
	return found && claim.UID == ref.UID && claim.Spec.VolumeName != "" && claim.Spec.VolumeName != pv.Name
}

func (c *Cluster) phaseOf(pv *corev1.PersistentVolume) corev1.PersistentVolumePhase {
	ref := pv.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return corev1.VolumeAvailable
	}
	claim, found := sharedOne[*corev1.PersistentVolumeClaim](c, ref.Namespace, ref.Name)
	if found && claim.UID == ref.UID {
		switch claim.Spec.VolumeName {
		case pv.Name:
			return corev1.VolumeBound
		case "":
			return corev1.VolumeAvailable
		}
	}
	return withoutClaim(pv)
}

func withoutClaim(pv *corev1.PersistentVolume) corev1.PersistentVolumePhase {
	if pv.Annotations[contract.AnnProvisionedBy] == "" && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return corev1.VolumeFailed // it finds no plugin that would delete it
	}
	return corev1.VolumeReleased
}
