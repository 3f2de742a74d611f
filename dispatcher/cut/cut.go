package cut

import (
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// Users write claims. 2,000 of them with 250 KiB of annotations once filled the memory of all
// replicas (TestCachesKeepFewBytesOfAnObject).

// maxUser is the longest text of a claim's creator or its groups that is kept.
const maxUser = 16 << 10

// maxFinalizers is how much of finalizers is kept of a claim, in bytes. Any number of them may be
// on it, none is read, and no write is computed from them.
const maxFinalizers = 512

// readOfBound are the annotations that are read on a claim that is bound.
var readOfBound = []string{
	contract.AnnProvisionTS, contract.AnnAttempts, contract.AnnResult, contract.AnnExitCode, contract.AnnMessage, contract.AnnClaimCloneOf,
	contract.AnnCloneRequest, corev1.BetaStorageClassAnnotation,
}

// readOfUnbound are the annotations that are read only on a claim that is not bound. The last says
// that some were not kept before.
var readOfUnbound = []string{
	storagehelpers.AnnStorageProvisioner, storagehelpers.AnnBetaStorageProvisioner, storagehelpers.AnnSelectedNode, storagehelpers.AnnBindCompleted,
	config.AnnCut,
}

// Object returns what the dispatcher reads of an object. It is a new object if anything was cut.
// Cutting it again changes nothing.
func Object(obj any) any {
	switch o := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		return Claim(o)
	case *corev1.PersistentVolume:
		return PV(o)
	case *corev1.Pod:
		return Pod(o)
	case *batchv1.Job:
		return cutJob(o)
	case *corev1.Node:
		return Node(o)
	case *storagev1.VolumeAttachment:
		return cutAttachment(o)
	case *corev1.ConfigMap:
		return Config(o)
	case *corev1.ServiceAccount:
		return cutAccount(o)
	}
	if m, ok := obj.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	return obj
}

// Kept returns what the caches hold of an object: of one at rest a Resting. Keeping it again changes
// nothing.
func Kept(obj any) any { return rest(Object(obj)) }

// Transform is the transform of every informer.
func Transform(obj any) (any, error) { return Kept(obj), nil }

// Claim keeps what a launch, a resize and a metric need of a claim.
func Claim(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	out := &corev1.PersistentVolumeClaim{ObjectMeta: cutMeta(&claim.ObjectMeta), Spec: cutClaimSpec(claim.Spec), Status: cutClaimStatus(claim.Status)}
	out.Namespace, out.Finalizers = shareText(claim.Namespace), nil
	if size := len(strings.Join(claim.Finalizers, "")); size <= maxFinalizers {
		out.Finalizers = shareAll(claim.Finalizers)
	}
	out.Annotations = map[string]string{}
	keepRead(out, claim, readOfBound)
	if claim.Spec.VolumeName == "" {
		keepRead(out, claim, readOfUnbound)
		keepText(out, claim)
		keepUser(out, claim)
	}
	return out
}

// cutClaimSpec keeps a claim's spec, and of a selector only that it is there. Kubernetes limits
// neither the names of a volume and a source nor how often an access mode is named.
func cutClaimSpec(s corev1.PersistentVolumeClaimSpec) corev1.PersistentVolumeClaimSpec {
	s.VolumeName = jobs.Abridge(s.VolumeName)
	s.AccessModes = shareAll(jobs.Modes(s.AccessModes))
	s.Resources = corev1.VolumeResourceRequirements{Requests: shareSize(s.Resources.Requests)}
	if s.Selector != nil {
		s.Selector = &metav1.LabelSelector{}
	}
	switch {
	case s.DataSourceRef != nil:
		s.DataSource = nil // it says the same
		s.DataSourceRef = &corev1.TypedObjectReference{
			Kind: jobs.Abridge(s.DataSourceRef.Kind), Name: jobs.Abridge(s.DataSourceRef.Name), Namespace: s.DataSourceRef.Namespace,
		}
	case s.DataSource != nil:
		s.DataSource = &corev1.TypedLocalObjectReference{Kind: jobs.Abridge(s.DataSource.Kind), Name: jobs.Abridge(s.DataSource.Name)}
	}
	return s
}

// cutMeta returns metadata without labels, annotations, owners and managed fields.
func cutMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, CreationTimestamp: m.CreationTimestamp,
		DeletionTimestamp: m.DeletionTimestamp, DeletionGracePeriodSeconds: m.DeletionGracePeriodSeconds, Finalizers: m.Finalizers,
	}
}

func cutClaimStatus(s corev1.PersistentVolumeClaimStatus) corev1.PersistentVolumeClaimStatus {
	return corev1.PersistentVolumeClaimStatus{
		Phase: s.Phase, Capacity: shareSize(s.Capacity),
		AllocatedResources: shareSize(s.AllocatedResources), AllocatedResourceStatuses: onlyStorage(s.AllocatedResourceStatuses),
	}
}

// onlyStorage returns the entry of a map that is about storage. A map that has no other is returned
// as it is.
func onlyStorage[M ~map[corev1.ResourceName]V, V any](all M) M {
	size, found := all[corev1.ResourceStorage]
	if len(all) == 0 || len(all) == 1 && found {
		return all
	}
	if !found {
		return nil
	}
	return M{corev1.ResourceStorage: size}
}

// keepRead keeps annotations with these keys.
func keepRead(out, claim *corev1.PersistentVolumeClaim, keys []string) {
	for _, key := range keys {
		if value, found := claim.Annotations[key]; found {
			out.Annotations[key] = jobs.Abridge(value)
		}
	}
}

// keepText keeps what a request carries, so that a launch reads nothing.
func keepText(out, claim *corev1.PersistentVolumeClaim) {
	labels, annotations, ok := jobs.TextOf(claim)
	maps.Copy(out.Annotations, annotations)
	if out.Labels = labels; !ok {
		out.Annotations[config.AnnCut] = "true"
	}
}

// keepUser keeps who created the claim. What is cut of that would name another user, so it is kept
// as a whole or not at all.
func keepUser(out, claim *corev1.PersistentVolumeClaim) {
	if len(claim.Annotations[jobs.AnnUsername])+len(claim.Annotations[jobs.AnnGroups]) > maxUser {
		return
	}
	for _, key := range []string{jobs.AnnUsername, jobs.AnnGroups} {
		if value, found := claim.Annotations[key]; found {
			out.Annotations[key] = value
		}
	}
}
