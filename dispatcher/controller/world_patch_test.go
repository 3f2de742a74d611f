package controller_test

import (
	corev1 "k8s.io/api/core/v1"
)

// within keeps a write on a claim to its status, or out of it.
func within(subresource string, old, obj object) {
	was, isClaim := old.(*corev1.PersistentVolumeClaim)
	switch {
	case !isClaim:
	case subresource == "status":
		obj.(*corev1.PersistentVolumeClaim).Spec = was.Spec
	default:
		obj.(*corev1.PersistentVolumeClaim).Status = was.Status
	}
}

func mergePatch(under, over map[string]any) map[string]any {
	for key, value := range over {
		above, isMap := value.(map[string]any)
		below, wasMap := under[key].(map[string]any)
		switch {
		case value == nil:
			delete(under, key)
		case isMap && wasMap:
			under[key] = mergePatch(below, above)
		default:
			under[key] = value
		}
	}
	return under
}
