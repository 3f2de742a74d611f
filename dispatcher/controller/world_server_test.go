package controller_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

// object is anything that the server stores.
type object interface {
	metav1.Object
	runtime.Object
}

// server is an API server in memory, behind client-go's fake clientset. Unlike that one's own tracker
// it keeps resourceVersions, UIDs, finalizers and preconditions, and its watches honour selectors: half
// of the dispatcher's rules hang on them.
type server struct {
	mu      sync.Mutex
	objects map[place]object
	log     []change
	// written has a token when something was written since it was last taken.
	written chan struct{}
	watches map[*cursor]bool
	// held are the resources whose watches bring nothing for now: caches fall behind.
	held map[string]bool
	// meddle, when set, comes between a client's decision to delete something and that.
	meddle func(at place)
	// refuse, when set, may refuse a client's write.
	refuse func(by, verb string, obj object) error
}

// place is where an object lies.
type place struct{ resource, namespace, name string }

// change is one write. Its version is its index in the log, plus one.
type change struct {
	place
	by, verb string
	at       time.Time
	old, now object // nil: there was none, or there is none any more
}

func newServer() *server {
	return &server{
		objects: map[place]object{}, written: make(chan struct{}, 1), watches: map[*cursor]bool{}, held: map[string]bool{},
	}
}

// client is a clientset whose writes are logged under a name. before and after every write it asks
// whether its process still lives.
func (s *server) client(by string, p *process) *fake.Clientset {
	c := &fake.Clientset{}
	c.AddReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if p.killed() {
			return true, nil, context.Canceled
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		before := len(s.log)
		obj, err := s.react(by, a)
		p.wrote(len(s.log) - before)
		return true, obj, err
	})
	c.AddWatchReactor("*", func(a clienttesting.Action) (bool, watch.Interface, error) {
		if p.killed() {
			return true, nil, context.Canceled
		}
		w, err := s.watch(p, a.(clienttesting.WatchActionImpl))
		return true, w, err
	})
	return c
}

// history is all that was written so far.
func (s *server) history() []change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

func (s *server) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.log)
}

// refusing sets who may refuse a write; nil: nobody.
func (s *server) refusing(refuse func(by, verb string, obj object) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

// locked does something with nobody else at it.
func (s *server) locked(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return do()
}

func (s *server) react(by string, action clienttesting.Action) (runtime.Object, error) {
	at := place{action.GetResource().Resource, action.GetNamespace(), ""}
	switch a := action.(type) {
	case clienttesting.ListActionImpl:
		return s.list(at, a)
	case clienttesting.GetActionImpl:
		at.name = a.Name
		return s.get(at)
	case clienttesting.CreateActionImpl:
		return s.create(by, at, a.Object.(object))
	case clienttesting.UpdateActionImpl:
		at.name = a.Object.(object).GetName()
		return s.update(by, "update", at, a.Object.(object))
	case clienttesting.PatchActionImpl:
		at.name = a.Name
		return s.patch(by, at, a)
	case clienttesting.DeleteActionImpl:
		at.name = a.Name
		if s.meddle != nil {
			s.meddle(at)
		}
		return nil, s.delete(by, at, a.DeleteOptions.Preconditions)
	default:
		return nil, fmt.Errorf("the server does not know %T", action)
	}
}

func (at place) notFound() error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: at.resource}, at.name)
}

func (at place) conflict(format string, args ...any) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: at.resource}, at.name, fmt.Errorf(format, args...))
}

func (s *server) get(at place) (object, error) {
	obj, found := s.objects[at]
	if !found {
		return nil, at.notFound()
	}
	return obj.DeepCopyObject().(object), nil
}

func (s *server) list(at place, a clienttesting.ListActionImpl) (runtime.Object, error) {
	list, err := scheme.Scheme.New(a.Kind.GroupVersion().WithKind(a.Kind.Kind + "List"))
	if err != nil {
		return nil, err
	}
	var items []runtime.Object
	for _, obj := range s.all(at.resource, at.namespace, a.ListRestrictions.Labels) {
		items = append(items, obj)
	}
	if err := meta.SetList(list, items); err != nil {
		return nil, err
	}
	list.(metav1.ListInterface).SetResourceVersion(strconv.Itoa(len(s.log)))
	return list, nil
}

// all returns copies, sorted by namespace and name.
func (s *server) all(resource, namespace string, selector labels.Selector) []object {
	var out []object
	for at, obj := range s.objects {
		if at.resource == resource && (namespace == "" || at.namespace == namespace) && selector.Matches(labels.Set(obj.GetLabels())) {
			out = append(out, obj.DeepCopyObject().(object))
		}
	}
	slices.SortFunc(out, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

func (s *server) create(by string, at place, obj object) (object, error) {
	at.name = obj.GetName()
	if _, found := s.objects[at]; found {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: at.resource}, at.name)
	}
	if s.refuse != nil {
		if err := s.refuse(by, "create", obj); err != nil {
			return nil, err
		}
	}
	obj = obj.DeepCopyObject().(object)
	obj.SetNamespace(at.namespace)
	obj.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", len(s.log)+1)))
	obj.SetCreationTimestamp(metav1.Now())
	return s.store(change{place: at, by: by, verb: "create", now: obj}), nil
}

func (s *server) update(by, verb string, at place, obj object) (object, error) {
	old, err := s.get(at)
	if err != nil {
		return nil, err
	}
	switch {
	case obj.GetUID() != "" && obj.GetUID() != old.GetUID():
		return nil, at.conflict("UID %s, not %s", old.GetUID(), obj.GetUID())
	case obj.GetResourceVersion() != "" && obj.GetResourceVersion() != old.GetResourceVersion():
		return nil, at.conflict("the object has been modified")
	case old.GetDeletionTimestamp() != nil && !subset(obj.GetFinalizers(), old.GetFinalizers()):
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: at.resource}, at.name, nil)
	}
	obj.SetUID(old.GetUID())
	obj.SetResourceVersion(old.GetResourceVersion())
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	if equality.Semantic.DeepEqual(obj, old) || equality.Semantic.DeepEqual(plain(obj), old) {
		return old, nil // nothing was changed, so nobody is told
	}
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		s.store(change{place: at, by: by, verb: verb, old: plain(obj)})
		return obj, nil
	}
	return s.store(change{place: at, by: by, verb: verb, old: old, now: obj}), nil
}

// patch knows merge patches. Server-side apply is one too: the dispatcher is the only applier, applies
// the same fields always, and forces. It never creates, since a patch with a UID cannot.
func (s *server) patch(by string, at place, a clienttesting.PatchActionImpl) (object, error) {
	old, err := s.get(at)
	if a.PatchType == types.ApplyPatchType && apierrors.IsNotFound(err) {
		return nil, at.conflict("uid mismatch: no existing object was found")
	}
	if err != nil {
		return nil, err
	}
	var under, over map[string]any
	if err := json.Unmarshal(encode(old), &under); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(a.Patch, &over); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	obj := reflect.New(reflect.TypeOf(old).Elem()).Interface().(object)
	if err := json.Unmarshal(encode(mergePatch(under, over)), obj); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	within(a.GetSubresource(), old, obj)
	if s.refuse != nil {
		if err := s.refuse(by, "patch", obj); err != nil {
			return nil, err
		}
	}
	return s.update(by, "patch", at, obj)
}

func (s *server) delete(by string, at place, must *metav1.Preconditions) error {
	old, err := s.get(at)
	if err != nil {
		return err
	}
	if must != nil && must.UID != nil && *must.UID != old.GetUID() {
		return at.conflict("UID %s, not %s", old.GetUID(), *must.UID)
	}
	if must != nil && must.ResourceVersion != nil && *must.ResourceVersion != old.GetResourceVersion() {
		return at.conflict("the object has been modified")
	}
	if len(old.GetFinalizers()) == 0 {
		s.store(change{place: at, by: by, verb: "delete", old: old})
		return nil
	}
	if old.GetDeletionTimestamp() == nil {
		obj := old.DeepCopyObject().(object)
		obj.SetDeletionTimestamp(new(metav1.Now()))
		s.store(change{place: at, by: by, verb: "delete", old: old, now: obj})
	}
	return nil
}

// store carries out a change and tells the watches and the world.
func (s *server) store(c change) object {
	c.at = time.Now()
	if c.now == nil {
		delete(s.objects, c.place)
	} else {
		c.now.SetResourceVersion(strconv.Itoa(len(s.log) + 1))
		c.now = plain(c.now)
		s.objects[c.place] = c.now
	}
	s.log = append(s.log, c)
	for w := range s.watches {
		w.wake()
	}
	wake(s.written)
	if c.now == nil {
		return nil
	}
	return c.now.DeepCopyObject().(object)
}

// plain is an object as it comes back over the wire: times in whole seconds, no type in it.
func plain(obj object) object {
	out := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(object)
	if err := json.Unmarshal(encode(obj), out); err != nil {
		panic(err)
	}
	out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	out.SetManagedFields(nil)
	return out
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func subset(a, b []string) bool {
	return !slices.ContainsFunc(a, func(v string) bool { return !slices.Contains(b, v) })
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
