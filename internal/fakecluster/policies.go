package fakecluster

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// The annotations that deploy/base/dispatcher-claim-policy.yaml and dispatcher-pv-policy.yaml let the dispatcher write. A test compares them with
// the policies, and every scenario with what is written.
var (
	AnnotationsOfClaims = []string{
		contract.AnnProvisionTS, contract.AnnAttempts, contract.AnnResult, contract.AnnExitCode, contract.AnnMessage, contract.AnnClaimCloneOf,
		contract.AnnResizer, AnnSelectedNode,
	}
	AnnotationsOfPVs = []string{contract.Domain + "rival"}
)

// Conditions of a claim that are about a resize.
var resizeConditions = []corev1.PersistentVolumeClaimConditionType{
	corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
	corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError,
}

// checkAdmitted checks that the policies that are shipped for the dispatcher would admit a write of it: a rare one that they refuse would be tried
// for ever.
func (r *replay) checkAdmitted(change Change) {
	old, now := r.now[change.Key], change.Now
	if now == nil && change.Verb != "delete" {
		now = change.Old // without its last finalizer it has gone
	}
	switch old := old.(type) {
	case *corev1.PersistentVolume:
		pv, stays := now.(*corev1.PersistentVolume)
		switch {
		case change.Verb == "delete":
			r.checkMayDelete(old)
		case stays:
			r.checkMayChange(old, pv)
		}
	case *corev1.PersistentVolumeClaim:
		if claim, stays := now.(*corev1.PersistentVolumeClaim); stays {
			r.checkMayWrite(old, claim)
		}
	}
}

func isNamed(pv *corev1.PersistentVolume) bool {
	return pv.Name == contract.PVName(pv.Annotations[contract.AnnClaimUID])
}

func isMarked(pv *corev1.PersistentVolume) bool {
	return slices.Contains(pv.Finalizers, contract.FinalizerStorage)
}

func (r *replay) checkMayDelete(pv *corev1.PersistentVolume) {
	ours := isNamed(pv) || isMarked(pv) && strings.HasPrefix(pv.Name, contract.PVName(""))
	if !ours || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || pv.Status.Phase == corev1.VolumeBound {
		r.c.T.Errorf("dispatcher-pv-policy.yaml refuses the deletion of %s, which is %s with the policy %s", pv.Name, pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy)
	}
}

func (r *replay) checkMayChange(old, pv *corev1.PersistentVolume) {
	allowed := old.DeepCopy()
	allowed.ResourceVersion, allowed.Finalizers, allowed.Spec.Capacity = pv.ResourceVersion, pv.Finalizers, pv.Spec.Capacity
	setAnnotations(&allowed.Annotations, pv.Annotations, AnnotationsOfPVs)
	switch {
	case !isNamed(old) && !isMarked(old):
		r.c.T.Errorf("dispatcher-pv-policy.yaml refuses a change of %s, which is not ours", old.Name)
	case !equality.Semantic.DeepEqual(allowed, pv), !slices.Equal(othersFinalizers(old), othersFinalizers(pv)), pv.Spec.Capacity.Storage().Cmp(*old.Spec.Capacity.Storage()) < 0:
		r.c.T.Errorf("dispatcher-pv-policy.yaml refuses a change of %s, from %+v to %+v", old.Name, old, pv)
	}
}

func othersFinalizers(pv *corev1.PersistentVolume) []string {
	return slices.DeleteFunc(slices.Clone(pv.Finalizers), func(f string) bool { return f == contract.FinalizerStorage })
}

func (r *replay) checkMayWrite(old, claim *corev1.PersistentVolumeClaim) {
	allowed := old.DeepCopy()
	allowed.ResourceVersion = claim.ResourceVersion
	setAnnotations(&allowed.Annotations, claim.Annotations, AnnotationsOfClaims)
	allowed.Status.Capacity, allowed.Status.AllocatedResources = claim.Status.Capacity, claim.Status.AllocatedResources
	allowed.Status.AllocatedResourceStatuses, allowed.Status.Conditions = claim.Status.AllocatedResourceStatuses, claim.Status.Conditions
	node, selected := claim.Annotations[AnnSelectedNode]
	switch by := old.Annotations[AnnStorageProvisioner]; {
	case by != "" && by != contract.ProvisionerName:
		r.c.T.Errorf("dispatcher-claim-policy.yaml refuses a write on %s, which is a claim of the provisioner %s", old.Name, by)
	case !equality.Semantic.DeepEqual(allowed, claim), !equality.Semantic.DeepEqual(otherConditions(old), otherConditions(claim)), selected && node != old.Annotations[AnnSelectedNode]:
		r.c.T.Errorf("dispatcher-claim-policy.yaml refuses a write on %s, from %+v to %+v", old.Name, old, claim)
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
