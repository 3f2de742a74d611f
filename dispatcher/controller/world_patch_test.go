package controller_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// overtaken lets somebody else write just before a patch.
func (s *server) overtaken(at place, patch []byte) {
	if s.overtake == nil {
		return
	}
	change := s.overtake(at, patch)
	obj, err := s.get(at)
	if change == nil || err != nil {
		return
	}
	change(obj)
	if _, err := s.update(user, "update", at, obj); err != nil {
		panic(err)
	}
}

// inForeground makes an object that is about to be deleted stay until what it owns has gone.
func (s *server) inForeground(at place) {
	if obj, found := s.objects[at]; found && obj.GetDeletionTimestamp() == nil {
		obj.SetFinalizers(append(obj.GetFinalizers(), metav1.FinalizerDeleteDependents))
	}
}
