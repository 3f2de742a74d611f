package policies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// noClaim is the UID of no claim, which a PV's claimRef gets when it is taken from its claim.
const noClaim = "00000000-0000-0000-0000-000000000000"

// Annotations of Kubernetes on a claim.
const (
	annSelectedNode       = "volume.kubernetes.io/selected-node"
	annStorageProvisioner = "volume.kubernetes.io/storage-provisioner"
)

// AnnotationsOfClaims are those that deploy/base/dispatcher-claim-policy.yaml lets the dispatcher
// write. A test compares them with the policy, and every scenario with what is written.
var AnnotationsOfClaims = []string{
	contract.AnnProvisionTS, contract.AnnAttempts, contract.AnnResult, contract.AnnExitCode, contract.AnnMessage, contract.AnnClaimCloneOf,
	contract.AnnResizer, annSelectedNode,
}

// Conditions of a claim that are about a resize.
var resizeConditions = []corev1.PersistentVolumeClaimConditionType{
	corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
	corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError,
}

// Refusal returns why the policies refuse a write of the dispatcher, or nothing if they admit it.
// Verb is "patch" or "delete", old what the object was.
func Refusal(verb string, old, now any) string {
	switch old := old.(type) {
	case *corev1.PersistentVolume:
		pv, isPV := now.(*corev1.PersistentVolume)
		switch {
		case verb == "delete":
			return refusedDeletion(old)
		case isPV:
			return refusedChange(old, pv)
		}
	case *corev1.PersistentVolumeClaim:
		if claim, isClaim := now.(*corev1.PersistentVolumeClaim); isClaim {
			return refusedWrite(old, claim)
		}
	}
	return ""
}

func isNamed(pv *corev1.PersistentVolume) bool {
	return pv.Name == contract.PVName(pv.Annotations[contract.AnnClaimUID])
}

func isMarked(pv *corev1.PersistentVolume) bool {
	return slices.Contains(pv.Finalizers, contract.FinalizerStorage)
}

func refusedDeletion(pv *corev1.PersistentVolume) string {
	ours := isNamed(pv) || isMarked(pv) && strings.HasPrefix(pv.Name, contract.PVName(""))
	if !ours || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || pv.Status.Phase == corev1.VolumeBound {
		return fmt.Sprintf("the deletion of %s, which is %s with the policy %s", pv.Name, pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy)
	}
	return ""
}

func refusedChange(old, pv *corev1.PersistentVolume) string {
	allowed := old.DeepCopy()
	allowed.ResourceVersion, allowed.Finalizers, allowed.Spec.Capacity = pv.ResourceVersion, pv.Finalizers, pv.Spec.Capacity
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		allowed.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	if isTaken(old, pv) {
		allowed.Spec.ClaimRef.UID = noClaim
	}
	switch {
	case !isNamed(old) && !isMarked(old):
		return "a change of " + old.Name + ", which is not ours"
	case !equality.Semantic.DeepEqual(allowed, pv), !slices.Equal(othersFinalizers(old), othersFinalizers(pv)), pv.Spec.Capacity.Storage().Cmp(*old.Spec.Capacity.Storage()) < 0:
		return fmt.Sprintf("a change of %s, from %+v to %+v", old.Name, old, pv)
	default:
		return ""
	}
}

// isTaken reports whether a PV that is to be deleted, and that no claim was bound to, is taken from its
// claim.
func isTaken(old, pv *corev1.PersistentVolume) bool {
	had, has := old.Spec.ClaimRef, pv.Spec.ClaimRef
	return had != nil && has != nil && has.UID == noClaim && had.UID != "" && string(had.UID) == old.Annotations[contract.AnnClaimUID] &&
		old.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		slices.Contains([]corev1.PersistentVolumePhase{"", corev1.VolumePending, corev1.VolumeAvailable}, old.Status.Phase)
}

func othersFinalizers(pv *corev1.PersistentVolume) []string {
	return slices.DeleteFunc(slices.Clone(pv.Finalizers), func(f string) bool { return f == contract.FinalizerStorage })
}

func refusedWrite(old, claim *corev1.PersistentVolumeClaim) string {
	allowed := old.DeepCopy()
	allowed.ResourceVersion = claim.ResourceVersion
	setAnnotations(&allowed.Annotations, claim.Annotations, AnnotationsOfClaims)
	allowed.Status.Capacity, allowed.Status.AllocatedResources = claim.Status.Capacity, claim.Status.AllocatedResources
	allowed.Status.AllocatedResourceStatuses, allowed.Status.Conditions = claim.Status.AllocatedResourceStatuses, claim.Status.Conditions
	node, selected := claim.Annotations[annSelectedNode]
	switch by := old.Annotations[annStorageProvisioner]; {
	case by != "" && by != contract.ProvisionerName:
		return fmt.Sprintf("a write on %s, which is a claim of the provisioner %s", old.Name, by)
	case !equality.Semantic.DeepEqual(allowed, claim), !equality.Semantic.DeepEqual(otherConditions(old), otherConditions(claim)), selected && node != old.Annotations[annSelectedNode]:
		return fmt.Sprintf("a write on %s, from %+v to %+v", old.Name, old, claim)
	default:
		return ""
	}
}

func otherConditions(claim *corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaimCondition {
	return slices.DeleteFunc(slices.Clone(claim.Status.Conditions), func(c corev1.PersistentVolumeClaimCondition) bool {
		return slices.Contains(resizeConditions, c.Type)
	})
}

// setAnnotations gives these annotations the values, or the absence, that they have in others.
func setAnnotations(annotations *map[string]string, others map[string]string, keys []string) {
	out := maps.Clone(*annotations)
	if out == nil {
		out = map[string]string{}
	}
	for _, key := range keys {
		if value, found := others[key]; found {
			out[key] = value
		} else {
			delete(out, key)
		}
	}
	*annotations = out
}
