package controller_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// resourceOf names the resource of a type.
func resourceOf(obj any) string {
	switch obj.(type) {
	case *corev1.PersistentVolumeClaim:
		return "persistentvolumeclaims"
	case *corev1.PersistentVolume:
		return "persistentvolumes"
	case *corev1.ConfigMap:
		return "configmaps"
	case *corev1.ServiceAccount:
		return "serviceaccounts"
	case *corev1.Pod:
		return "pods"
	case *corev1.Node:
		return "nodes"
	case *batchv1.Job:
		return "jobs"
	case *storagev1.StorageClass:
		return "storageclasses"
	case *corev1.Event:
		return "events"
	case *appsv1.ControllerRevision:
		return "controllerrevisions"
	default:
		panic(fmt.Sprintf("no resource for %T", obj))
	}
}

// every returns all objects of a type, as they are now.
func every[T object](w *world) []T {
	var zero T
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	var out []T
	for _, obj := range w.server.all(resourceOf(zero), "", labels.Everything()) {
		out = append(out, obj.(T))
	}
	return out
}

// get returns one object, or nil. ns is empty for what has no namespace.
func get[T object](w *world, ns, name string) T {
	var zero T
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	obj, err := w.server.get(place{resourceOf(zero), ns, name})
	if err != nil {
		return zero
	}
	return obj.(T)
}

// add creates an object on somebody's behalf.
func add[T object](w *world, by string, obj T) T {
	w.t.Helper()
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	made, err := w.server.create(by, place{resourceOf(obj), obj.GetNamespace(), ""}, obj)
	if err != nil {
		w.t.Fatalf("%s creates %s: %v", by, obj.GetName(), err)
	}
	return made.(T)
}

// edit changes an object, status and all, on somebody's behalf, as it is by then. It must exist.
func edit[T object](w *world, by string, obj T, change func(T)) {
	w.t.Helper()
	at := place{resourceOf(obj), obj.GetNamespace(), obj.GetName()}
	for {
		now := get[T](w, at.namespace, at.name)
		change(now)
		err := w.server.locked(func() error { _, err := w.server.update(by, "update", at, now); return err })
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			w.t.Fatalf("%s changes %s: %v", by, obj.GetName(), err)
		}
		return
	}
}

// drop deletes an object as kubectl does. One that has gone already is no fault.
func drop[T object](w *world, by string, obj T) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	_ = w.server.delete(by, place{resourceOf(obj), obj.GetNamespace(), obj.GetName()}, &metav1.Preconditions{UID: new(obj.GetUID())})
}

// unfinalize takes a finalizer off.
func unfinalize[T object](w *world, by string, obj T, finalizer string) {
	edit(w, by, obj, func(o T) {
		var left []string
		for _, f := range o.GetFinalizers() {
			if f != finalizer {
				left = append(left, f)
			}
		}
		o.SetFinalizers(left)
	})
}
