package cut

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Most objects have the same few sizes, classes, finalizers and namespaces. Each object that is decoded has copies of its own; two thirds of what a claim
// with its PV needed were such copies. Objects of the caches are never written to, so they can share.

// maxShared is how many different values are shared of one kind. Users can make up any number of them. Then
// all are forgotten, and those in use are soon shared again.
const maxShared = 10_000

// longestShared is the longest value that is shared, in bytes.
const longestShared = 512

// pool holds one copy of each value.
type pool[T any] struct {
	mu  sync.RWMutex
	all map[string]T
}

// get returns the copy that is shared of a value.
func (p *pool[T]) get(key string, value T) T {
	p.mu.RLock()
	shared, found := p.all[key]
	p.mu.RUnlock()
	if found {
		return shared
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if shared, found = p.all[key]; found {
		return shared
	}
	if len(p.all) >= maxShared {
		clear(p.all)
	}
	p.all[key] = value
	return value
}

var (
	texts      = pool[string]{all: map[string]string{}}
	finalizers = pool[[]string]{all: map[string][]string{}}
	modes      = pool[[]corev1.PersistentVolumeAccessMode]{all: map[string][]corev1.PersistentVolumeAccessMode{}}
	sizes      = pool[corev1.ResourceList]{all: map[string]corev1.ResourceList{}}
)

// shareText returns a shared copy of a short text.
func shareText(s string) string {
	if len(s) > longestShared {
		return s
	}
	return texts.get(s, s)
}

// shareAll returns a shared copy of a short list.
func shareAll[T ~string](in *pool[[]T], list []T) []T {
	var key strings.Builder
	for _, s := range list {
		key.WriteString(string(s) + "\n")
	}
	if len(list) == 0 || key.Len() > longestShared {
		return list
	}
	return in.get(key.String(), list)
}

// shareSize returns a shared copy of what a claim asks for or has of storage.
func shareSize(list corev1.ResourceList) corev1.ResourceList {
	list = onlyStorage(list)
	if len(list) == 0 {
		return nil
	}
	return sizes.get(list.Storage().String(), list)
}

// PV keeps all of a PV but its managed fields: an image that deletes or expands the volume is given the whole.
func PV(pv *corev1.PersistentVolume) *corev1.PersistentVolume {
	out := *pv
	out.ManagedFields, out.Finalizers = nil, shareAll(&finalizers, pv.Finalizers)
	if len(pv.Spec.Capacity) == 1 {
		out.Spec.Capacity = shareSize(pv.Spec.Capacity)
	}
	out.Spec.AccessModes, out.Spec.StorageClassName = shareAll(&modes, pv.Spec.AccessModes), shareText(pv.Spec.StorageClassName)
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
