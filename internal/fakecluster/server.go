package fakecluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
)

// Object is anything that the server stores.
type Object interface {
	metav1.Object
	runtime.Object
}

// Server is an API server in memory, behind client-go's fake clientset. Unlike that one's own
// tracker it keeps resourceVersions, UIDs, finalizers and preconditions, and its watches honour
// selectors: half of the dispatcher's rules hang on them. An object that is stored is never written
// to again.
type Server struct {
	// Forbidden are the namespaces in which clients may do nothing, as without a RoleBinding.
	// Watches that exist go on.
	Forbidden sync.Map
	// NewUID returns the UID of an object that is created. nil: they are numbered.
	NewUID func() types.UID

	clock  clock.PassiveClock
	mu     sync.Mutex
	stored map[string]*shelf // by resource
	log    []Change
	// written has a token when something was written since it was last taken.
	written chan struct{}
	watches map[*cursor]bool
	// delayed are the resources whose watches bring nothing for now.
	delayed map[string]bool
	// everDelayed are those of which any watch ever brought nothing.
	everDelayed map[string]bool
	// stepped is set if watches bring a change only when Move lets them.
	stepped  bool
	refuse   func(by, verb string, obj Object) error
	lose     func(verb string, obj Object) bool
	overtake func(verb string, at Key, patch []byte) func(Object)
}

// Key is where an object is stored.
type Key struct{ Resource, Namespace, Name string }

// Change is one write. Its resourceVersion is its index in the history, plus one.
type Change struct {
	Key
	By, Verb string
	At       time.Time
	Old, Now Object // nil: there was none, or there is none any more
}

func newServer(clk clock.PassiveClock) *Server {
	return &Server{
		clock: clk, stored: map[string]*shelf{}, written: make(chan struct{}, 1), watches: map[*cursor]bool{}, delayed: map[string]bool{}, everDelayed: map[string]bool{},
	}
}

// Client returns a clientset whose writes stand in the history under a name.
func (s *Server) Client(by string) *fake.Clientset { return s.client(by, nil) }

// client returns the clientset of a process, which answers nothing once the process was killed.
func (s *Server) client(by string, p *Process) *fake.Clientset {
	c := &fake.Clientset{}
	// One reactor for all that is answered: each is handed a copy of the object that is written.
	c.AddReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if err := s.forbids(by, a); err != nil {
			return true, nil, err
		}
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
		if err := s.forbids(by, a); err != nil {
			return true, nil, err
		}
		if p.killed() {
			return true, nil, context.Canceled
		}
		w, err := s.watch(p, a.(clienttesting.WatchActionImpl))
		return true, w, err
	})
	return c
}

// forbids returns the error of a client that may not do something, or nil.
func (s *Server) forbids(by string, a clienttesting.Action) error {
	if _, forbidden := s.Forbidden.Load(a.GetNamespace()); !forbidden && isGranted(by, a) {
		return nil
	}
	return apierrors.NewForbidden(a.GetResource().GroupResource(), "", nil)
}

// History returns all that was written so far. Its objects must not be changed.
func (s *Server) History() []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.log)
}

// Refuse sets which creates, patches and deletes of clients are refused; nil: none. Like a mutating webhook,
// refuse may also change the object that is about to be stored, and the request is answered without
// an error.
func (s *Server) Refuse(refuse func(by, verb string, obj Object) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

// refusal returns why a write is refused, or nil.
func (s *Server) refusal(by, verb string, obj Object) error {
	if s.refuse == nil {
		return nil
	}
	return s.refuse(by, verb, obj)
}

// Written has a token when something was written since it was last taken.
func (s *Server) Written() <-chan struct{} { return s.written }

// LoseAnswer sets for which objects that clients create no answer arrives although they are stored;
// nil: none.
func (s *Server) LoseAnswer(lose func(obj Object) bool) {
	if lose == nil {
		s.LoseAnswers(nil)
		return
	}
	s.LoseAnswers(func(verb string, obj Object) bool { return verb == "create" && lose(obj) })
}

// LoseAnswers sets to which writes of clients no answer arrives although they are carried out; nil:
// none. The verb is create, update, patch or delete, with /status behind it where it is on the
// status. obj is what is stored after the write, or was before it was deleted. The client gets the
// error of staging/src/k8s.io/apiserver/pkg/server/filters/timeout.go.
func (s *Server) LoseAnswers(lose func(verb string, obj Object) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = lose
}

// answer returns the answer to a write, unless it is lost.
func (s *Server) answer(a clienttesting.Action, obj Object, err error) (runtime.Object, error) {
	verb := a.GetVerb()
	if a.GetSubresource() != "" {
		verb += "/" + a.GetSubresource()
	}
	if err == nil && obj != nil && s.lose != nil && s.lose(verb, obj) {
		return nil, apierrors.NewTimeoutError("the answer is lost", 0)
	}
	return copied(obj, err)
}

// Overtake sets what comes in between a client's decision to patch or delete an object and the
// request: the change that is returned is made first, by a user. nil: nothing. The server is locked
// while overtake runs.
func (s *Server) Overtake(overtake func(verb string, at Key, patch []byte) func(Object)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overtake = overtake
}

func (s *Server) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.log)
}

// locked does something while no other client writes.
func (s *Server) locked(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return do()
}

func (s *Server) react(by string, action clienttesting.Action) (runtime.Object, error) {
	at := Key{action.GetResource().Resource, action.GetNamespace(), ""}
	switch a := action.(type) {
	case clienttesting.ListActionImpl:
		return s.list(at, a)
	case clienttesting.GetActionImpl:
		at.Name = a.Name
		return copied(s.get(at))
	case clienttesting.CreateActionImpl:
		if len(a.CreateOptions.DryRun) > 0 {
			return a.Object, s.refusal(by, "create", a.Object.(Object))
		}
		obj, err := s.create(by, at, a.Object.(Object))
		return s.answer(a, obj, err)
	case clienttesting.UpdateActionImpl:
		at.Name = a.Object.(Object).GetName()
		obj, err := s.update(by, "update", at, a.Object.(Object))
		return s.answer(a, obj, err)
	case clienttesting.PatchActionImpl:
		at.Name = a.Name
		obj, err := s.patch(by, at, a)
		return s.answer(a, obj, err)
	case clienttesting.DeleteActionImpl:
		at.Name = a.Name
		s.overtaken("delete", at, nil)
		if old, err := s.get(at); err == nil {
			if err := s.refusal(by, "delete", old); err != nil {
				return nil, err
			}
		}
		s.propagate(by, at, finalizerBy(a.DeleteOptions.PropagationPolicy, at))
		obj, _ := s.get(at)
		_, err := s.answer(a, obj, s.delete(by, at, a.DeleteOptions.Preconditions))
		return nil, err
	default:
		return nil, fmt.Errorf("the server does not know %T", action)
	}
}

// overtaken lets a user write just before a request.
func (s *Server) overtaken(verb string, at Key, patch []byte) {
	if s.overtake == nil {
		return
	}
	change := s.overtake(verb, at, patch)
	obj, err := copied(s.get(at))
	if change == nil || err != nil {
		return
	}
	change(obj)
	if _, err := s.update(User, "update", at, obj); err != nil {
		panic(err)
	}
}

// copied returns a copy for a caller who may change it.
func copied(obj Object, err error) (Object, error) {
	if err != nil {
		return nil, err
	}
	return obj.DeepCopyObject().(Object), nil
}

func (at Key) groupResource() schema.GroupResource {
	return schema.GroupResource{Resource: at.Resource}
}

func (at Key) conflict(format string, args ...any) error {
	return apierrors.NewConflict(at.groupResource(), at.Name, fmt.Errorf(format, args...))
}
