package cut

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/quantity"
)

// Most objects have the same few sizes, classes, finalizers and namespaces. Each object that is
// decoded has copies of its own; two thirds of what a claim with its PV needed were such copies.
// Objects of the caches are never written to, so they can share.

// maxShared is how many different values are shared, those that came last. Users can make up any number
// of them. The package unique forgets at each garbage collection those of which no handle is kept, so
// it would share only among objects that are decoded at one time.
const maxShared = 10_000

// longestShared is the longest value that is shared, in bytes.
const longestShared = 512

// shared holds one copy of each value.
var shared = lru.New(maxShared)

// text is the key of a value: for each type one of its own.
type text[T any] string

// share returns the copy that is shared of a value.
func share[T any](key string, value T) T {
	if one, found := shared.Get(text[T](key)); found {
		return one.(T)
	}
	shared.Add(text[T](key), value)
	return value
}

// shareText returns a shared copy of a short text.
func shareText(s string) string {
	if len(s) > longestShared {
		return s
	}
	return share(s, s)
}

// shareAll returns a shared copy of a short list.
func shareAll[T ~string](list []T) []T {
	var key strings.Builder
	for _, s := range list {
		key.WriteString(string(s) + "\n")
	}
	if len(list) == 0 || key.Len() > longestShared {
		return list
	}
	return share(key.String(), list)
}

// shareSize returns a shared copy of what a claim asks for or has of storage. It is bounded, since
// a user may ask for a size whose comparison takes long
// (TestAHugeQuantityIsNotCompared).
func shareSize(list corev1.ResourceList) corev1.ResourceList {
	size, found := list[corev1.ResourceStorage]
	if !found {
		return nil
	}
	size = quantity.Bounded(size)
	return share(size.String(), corev1.ResourceList{corev1.ResourceStorage: size})
}

// PV keeps all of a PV but its managed fields: an image that deletes or expands the volume is given
// the whole. It keeps a part of one that no Job has room for. Otherwise the token of one run for
// several claims could fill the caches by a thousand PVs.
func PV(pv *corev1.PersistentVolume) *corev1.PersistentVolume {
	read := *pv
	read.ManagedFields = nil
	if read.Size() > contract.MaxFiles {
		read = *withoutTexts(pv)
	}
	pv = &read
	out := read
	out.Finalizers = shareAll(pv.Finalizers)
	if len(pv.Spec.Capacity) == 1 {
		out.Spec.Capacity = shareSize(pv.Spec.Capacity)
	}
	out.Spec.AccessModes, out.Spec.StorageClassName = shareAll(pv.Spec.AccessModes), shareText(pv.Spec.StorageClassName)
	if ref := pv.Spec.ClaimRef; ref != nil {
		shared := *ref
		shared.Kind, shared.APIVersion, shared.Namespace = shareText(ref.Kind), shareText(ref.APIVersion), shareText(ref.Namespace)
		out.Spec.ClaimRef = &shared
	}
	if pv.Annotations != nil {
		out.Annotations = make(map[string]string, len(pv.Annotations))
	}
	for key, value := range pv.Annotations {
		out.Annotations[shareText(key)] = value
	}
	return &out
}

// largestSource is the largest volume source, in bytes, and node affinity that are kept of a PV
// that is too large. It may stand for the same volume as a PV that is kept whole, whose source is
// no larger.
const largestSource = contract.MaxFiles

// withoutTexts returns a PV with the annotations and fields by which it is found, compared and released.
func withoutTexts(pv *corev1.PersistentVolume) *corev1.PersistentVolume {
	out := &corev1.PersistentVolume{}
	out.TypeMeta, out.Status.Phase, out.Status.LastPhaseTransitionTime = pv.TypeMeta, pv.Status.Phase, pv.Status.LastPhaseTransitionTime
	out.Name, out.UID, out.ResourceVersion = pv.Name, pv.UID, pv.ResourceVersion
	out.CreationTimestamp, out.DeletionTimestamp, out.Finalizers = pv.CreationTimestamp, pv.DeletionTimestamp, pv.Finalizers
	out.Annotations = map[string]string{config.AnnCut: "true"}
	for _, key := range []string{contract.AnnProvisionedBy, contract.AnnClaimUID, contract.AnnRevision, contract.AnnSecret} {
		if value, found := pv.Annotations[key]; found {
			out.Annotations[key] = jobs.Abridge(value)
		}
	}
	out.Spec.Capacity, out.Spec.AccessModes, out.Spec.VolumeMode = pv.Spec.Capacity, jobs.Modes(pv.Spec.AccessModes), pv.Spec.VolumeMode
	out.Spec.StorageClassName, out.Spec.PersistentVolumeReclaimPolicy = jobs.Abridge(pv.Spec.StorageClassName), pv.Spec.PersistentVolumeReclaimPolicy
	if pv.Spec.PersistentVolumeSource.Size() <= largestSource {
		out.Spec.PersistentVolumeSource = pv.Spec.PersistentVolumeSource
	}
	if affinity := pv.Spec.NodeAffinity; affinity != nil && affinity.Size() <= largestSource {
		out.Spec.NodeAffinity = affinity
	}
	if ref := pv.Spec.ClaimRef; ref != nil {
		out.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: jobs.Abridge(ref.Namespace), Name: jobs.Abridge(ref.Name), UID: types.UID(jobs.Abridge(string(ref.UID)))}
	}
	return out
}
