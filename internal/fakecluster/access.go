package fakecluster

import (
	"fmt"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// In is a Cluster, or whatever embeds one.
type In interface{ self() *Cluster }

func (c *Cluster) self() *Cluster { return c }

// resources are the resources of the types that the server stores.
var resources = map[reflect.Type]string{
	reflect.TypeFor[*appsv1.ControllerRevision]():    "controllerrevisions",
	reflect.TypeFor[*batchv1.Job]():                  "jobs",
	reflect.TypeFor[*coordinationv1.Lease]():         "leases",
	reflect.TypeFor[*corev1.ConfigMap]():             "configmaps",
	reflect.TypeFor[*corev1.Event]():                 "events",
	reflect.TypeFor[*corev1.Node]():                  "nodes",
	reflect.TypeFor[*corev1.PersistentVolume]():      "persistentvolumes",
	reflect.TypeFor[*corev1.PersistentVolumeClaim](): "persistentvolumeclaims",
	reflect.TypeFor[*corev1.Pod]():                   "pods",
	reflect.TypeFor[*corev1.Secret]():                "secrets",
	reflect.TypeFor[*corev1.ServiceAccount]():        "serviceaccounts",
	reflect.TypeFor[*storagev1.StorageClass]():       "storageclasses",
	reflect.TypeFor[*storagev1.VolumeAttachment]():   "volumeattachments",
}

// ResourceOf returns the resource of an object.
func ResourceOf(obj any) string {
	resource, known := resources[reflect.TypeOf(obj)]
	if !known {
		panic(fmt.Sprintf("no resource for %T", obj))
	}
	return resource
}

func keyOf(obj Object) Key { return Key{ResourceOf(obj), obj.GetNamespace(), obj.GetName()} }

// List returns all objects of a type, as they are now, sorted by namespace and name.
func List[O Object](in In) []O { return ListOf(in, func(O) bool { return true }) }

// ListOf returns those that are wanted. Only they are copied: of's argument must not be changed.
func ListOf[O Object](in In, of func(O) bool) []O {
	var out []O
	for _, obj := range shared[O](in.self()) {
		if of(obj) {
			out = append(out, obj.DeepCopyObject().(O))
		}
	}
	return out
}

// Any reports whether there is an object of a type that is as asked. None is copied: of's argument
// must not be changed.
func Any[O Object](in In, of func(O) bool) bool { return slices.ContainsFunc(shared[O](in.self()), of) }

// Get returns one object as it is now, or nil. The namespace is empty for what has none.
func Get[O Object](in In, namespace, name string) O {
	obj, found := sharedOne[O](in.self(), namespace, name)
	if !found {
		return obj
	}
	return obj.DeepCopyObject().(O)
}

// Create creates an object on a client's behalf.
func Create[O Object](in In, by string, obj O) O {
	c := in.self()
	c.T.Helper()
	var made Object
	err := c.Server.locked(func() (err error) {
		made, err = copied(c.Server.create(by, keyOf(obj), obj.DeepCopyObject().(Object)))
		return err
	})
	if err != nil {
		c.T.Fatalf("%s creates %s: %v", by, obj.GetName(), err)
	}
	return made.(O)
}

// Update changes an object, status and all, on a client's behalf, as it is by then. It must exist.
func Update[O Object](in In, by string, obj O, change func(O)) {
	c := in.self()
	c.T.Helper()
	at := keyOf(obj)
	for {
		now, found := sharedOne[O](c, at.Namespace, at.Name)
		if !found {
			c.T.Fatalf("%s changes %s, which does not exist", by, at)
		}
		now = now.DeepCopyObject().(O)
		change(now) // which may well read from the server
		err := c.Server.locked(func() error { _, err := c.Server.update(by, "update", at, now); return err })
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			c.T.Fatalf("%s changes %s: %v", by, at, err)
		}
		return
	}
}

// Delete deletes an object as kubectl does. One that was deleted already is no fault.
func Delete[O Object](in In, by string, obj O) {
	s := in.self().Server
	_ = s.locked(func() error { return s.delete(by, keyOf(obj), &metav1.Preconditions{UID: new(obj.GetUID())}) })
}

// RemoveFinalizer takes a finalizer off.
func RemoveFinalizer[O Object](in In, by string, obj O, finalizer string) {
	Update(in, by, obj, func(o O) { withoutFinalizer(o, finalizer) })
}

// Annotate sets an annotation of an object that is about to be written.
func Annotate(obj Object, key, value string) {
	all := obj.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	obj.SetAnnotations(all)
}

func withoutFinalizer(obj Object, finalizer string) {
	obj.SetFinalizers(slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return f == finalizer }))
}

// shared returns all objects of a type, which must not be changed.
func shared[O Object](c *Cluster) []O {
	var zero O
	c.Server.mu.Lock()
	defer c.Server.mu.Unlock()
	objects := c.Server.shelf(ResourceOf(zero)).objects
	out := make([]O, len(objects))
	for i, obj := range objects {
		out[i] = obj.(O)
	}
	return out
}

// sharedOne returns an object, which must not be changed, and whether there is one.
func sharedOne[O Object](c *Cluster, namespace, name string) (O, bool) {
	var zero O
	c.Server.mu.Lock()
	defer c.Server.mu.Unlock()
	obj, err := c.Server.get(Key{ResourceOf(zero), namespace, name})
	if err != nil {
		return zero, false
	}
	return obj.(O), true
}

// set changes an object on behalf of one of the cluster's own controllers. One that was deleted
// meanwhile is left alone. change is called under the server's lock.
func set[O Object](c *Cluster, by string, obj O, change func(O)) {
	at := keyOf(obj)
	err := c.Server.locked(func() error {
		now, err := copied(c.Server.get(at))
		if err != nil || now.GetUID() != obj.GetUID() {
			return nil //nolint:nilerr // it no longer exists
		}
		change(now.(O))
		_, err = c.Server.update(by, "update", at, now)
		return err
	})
	if err != nil {
		c.T.Fatalf("%s changes %s: %v", by, at, err)
	}
}
