package fakecluster

import (
	"cmp"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

// shelf holds the objects of one resource, sorted by namespace and name.
type shelf struct{ objects []Object }

func (s *shelf) find(at Key) (int, bool) {
	return slices.BinarySearchFunc(s.objects, at, func(obj Object, at Key) int {
		return cmp.Or(cmp.Compare(obj.GetNamespace(), at.Namespace), cmp.Compare(obj.GetName(), at.Name))
	})
}

// put stores an object, or takes it away if it is nil.
func (s *shelf) put(at Key, obj Object) {
	switch i, found := s.find(at); {
	case found && obj == nil:
		s.objects = slices.Delete(s.objects, i, i+1)
	case found:
		s.objects[i] = obj
	case obj != nil:
		s.objects = slices.Insert(s.objects, i, obj)
	}
}

func (s *Server) shelf(resource string) *shelf {
	if s.stored[resource] == nil {
		s.stored[resource] = &shelf{}
	}
	return s.stored[resource]
}

// get returns the stored object, which must not be changed.
func (s *Server) get(at Key) (Object, error) {
	of := s.shelf(at.Resource)
	i, found := of.find(at)
	if !found {
		return nil, apierrors.NewNotFound(at.groupResource(), at.Name)
	}
	return of.objects[i], nil
}

func (s *Server) list(at Key, a clienttesting.ListActionImpl) (runtime.Object, error) {
	list, err := scheme.Scheme.New(a.Kind.GroupVersion().WithKind(a.Kind.Kind + "List"))
	if err != nil {
		return nil, err
	}
	var items []runtime.Object
	for _, obj := range s.shelf(at.Resource).objects {
		if (at.Namespace == "" || at.Namespace == obj.GetNamespace()) && a.ListRestrictions.Labels.Matches(labels.Set(obj.GetLabels())) {
			items = append(items, obj.DeepCopyObject())
		}
	}
	if err := meta.SetList(list, items); err != nil {
		return nil, err
	}
	list.(metav1.ListInterface).SetResourceVersion(strconv.Itoa(len(s.log)))
	return list, nil
}

// create stores an object, which is the server's from then on.
func (s *Server) create(by string, at Key, obj Object) (Object, error) {
	if prefix := obj.GetGenerateName(); prefix != "" && obj.GetName() == "" {
		obj.SetName(prefix + strconv.Itoa(len(s.log)))
	}
	at.Name = obj.GetName()
	if _, found := s.shelf(at.Resource).find(at); found {
		return nil, apierrors.NewAlreadyExists(at.groupResource(), at.Name)
	}
	if err := s.refusal(by, "create", obj); err != nil {
		return nil, err
	}
	if err := invalid(obj); err != nil {
		return nil, err
	}
	if at.Resource == "persistentvolumes" && !slices.Contains(obj.GetFinalizers(), FinalizerPVProtection) { // an admission plugin protects every one
		obj.SetFinalizers(append(slices.Clone(obj.GetFinalizers()), FinalizerPVProtection))
	}
	obj.SetNamespace(at.Namespace)
	obj.SetUID(s.newUID())
	obj.SetCreationTimestamp(metav1.NewTime(s.clock.Now()))
	asStored(obj)
	return s.store(Change{Key: at, By: by, Verb: "create", Now: obj}), nil
}

// invalid returns why an object is one that the API server refuses, or nil: the key of a ConfigMap, or
// an NFS source of a PersistentVolume (pkg/apis/core/validation, ValidateConfigMap and
// validateNFSVolumeSource). Other fields are not judged.
func invalid(obj Object) error {
	var faults field.ErrorList
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		for key := range o.Data {
			if why := validation.IsConfigMapKey(key); len(why) > 0 {
				faults = append(faults, field.Invalid(field.NewPath("data").Key(key), key, strings.Join(why, "; ")))
			}
		}
	case *corev1.PersistentVolume:
		if nfs := o.Spec.NFS; nfs != nil && (nfs.Server == "" || !path.IsAbs(nfs.Path)) {
			faults = append(faults, field.Invalid(field.NewPath("spec", "nfs"), nfs.Path, "must have a server, and an absolute path"))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Kind: ResourceOf(obj)}, obj.GetName(), faults)
}

func (s *Server) newUID() types.UID {
	if s.NewUID != nil {
		return s.NewUID()
	}
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", len(s.log)+1))
}

// update stores an object in another's place. It is the server's from then on.
func (s *Server) update(by, verb string, at Key, obj Object) (Object, error) {
	old, err := s.get(at)
	if err != nil {
		return nil, err
	}
	if err := at.permits(old, obj.GetUID(), obj.GetResourceVersion()); err != nil {
		return nil, err
	}
	if old.GetDeletionTimestamp() != nil && !isSubset(obj.GetFinalizers(), old.GetFinalizers()) {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: at.Resource}, at.Name, nil)
	}
	obj.SetUID(old.GetUID())
	obj.SetResourceVersion(old.GetResourceVersion())
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	asStored(obj)
	if isUnchanged(obj, old) {
		return old, nil // nothing was changed, so no watch brings anything
	}
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		s.store(Change{Key: at, By: by, Verb: verb, Old: obj})
		return obj, nil
	}
	return s.store(Change{Key: at, By: by, Verb: verb, Old: old, Now: obj}), nil
}

// isUnchanged reports whether two objects are the same. What most writes change is compared first: the
// specs of Jobs and pods are large.
func isUnchanged(obj, old Object) bool {
	one, other := reflect.ValueOf(obj).Elem(), reflect.ValueOf(old).Elem()
	for _, name := range []string{"ObjectMeta", "Status"} {
		if part := one.FieldByName(name); part.IsValid() && !equality.Semantic.DeepEqual(part.Addr().Interface(), other.FieldByName(name).Addr().Interface()) {
			return false
		}
	}
	return equality.Semantic.DeepEqual(obj, old)
}

// permits returns a conflict if a write asks for another UID or resourceVersion than the stored
// object has.
func (at Key) permits(old Object, uid types.UID, version string) error {
	switch {
	case uid != "" && uid != old.GetUID():
		return at.conflict("UID %s, not %s", old.GetUID(), uid)
	case version != "" && version != old.GetResourceVersion():
		return at.conflict("the object has been modified")
	default:
		return nil
	}
}

func (s *Server) delete(by string, at Key, must *metav1.Preconditions) error {
	old, err := s.get(at)
	if err != nil {
		return err
	}
	if must != nil {
		if err := at.permits(old, *cmp.Or(must.UID, new(types.UID)), *cmp.Or(must.ResourceVersion, new(string))); err != nil {
			return err
		}
	}
	if len(old.GetFinalizers()) == 0 {
		s.store(Change{Key: at, By: by, Verb: "delete", Old: old})
		return nil
	}
	if old.GetDeletionTimestamp() == nil {
		obj := old.DeepCopyObject().(Object)
		obj.SetDeletionTimestamp(new(metav1.NewTime(s.clock.Now())))
		asStored(obj)
		s.store(Change{Key: at, By: by, Verb: "delete", Old: old, Now: obj})
	}
	return nil
}

// finalizerBy returns the finalizer of the garbage collector that an object gets when it is
// deleted, if any. Of a Job without a policy it is Orphan's.
func finalizerBy(policy *metav1.DeletionPropagation, at Key) string {
	switch {
	case policy != nil && *policy == metav1.DeletePropagationForeground:
		return metav1.FinalizerDeleteDependents
	case policy != nil && *policy == metav1.DeletePropagationOrphan, policy == nil && at.Resource == "jobs":
		return metav1.FinalizerOrphanDependents
	default:
		return ""
	}
}

// propagate makes an object that is about to be deleted, or is being deleted already, stay until
// the garbage collector has deleted what it owns, or has taken the owner off it, as the finalizer
// says. The last client that deletes it decides which.
func (s *Server) propagate(by string, at Key, finalizer string) {
	old, err := s.get(at)
	if err != nil || finalizer == "" || slices.Contains(old.GetFinalizers(), finalizer) {
		return
	}
	obj := old.DeepCopyObject().(Object)
	withoutFinalizer(obj, metav1.FinalizerDeleteDependents)
	withoutFinalizer(obj, metav1.FinalizerOrphanDependents)
	obj.SetFinalizers(append(obj.GetFinalizers(), finalizer))
	if old.GetDeletionTimestamp() == nil {
		s.shelf(at.Resource).put(at, obj)
	} else {
		s.store(Change{Key: at, By: by, Verb: "delete", Old: old, Now: obj})
	}
}

// store carries out a change and notifies the watches and the cluster.
func (s *Server) store(c Change) Object {
	c.At = s.clock.Now()
	if c.Now != nil {
		c.Now.SetResourceVersion(strconv.Itoa(len(s.log) + 1))
	}
	s.shelf(c.Resource).put(c.Key, c.Now)
	s.log = append(s.log, c)
	s.notifyWatches(c.Resource)
	notify(s.written)
	return c.Now
}

func isSubset(a, b []string) bool {
	return !slices.ContainsFunc(a, func(v string) bool { return !slices.Contains(b, v) })
}
