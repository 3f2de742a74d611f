package fakecluster

import (
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// cursor is a watch: a place in the server's history that moves on.
type cursor struct {
	server              *Server
	process             *Process // that watches; nil: a client without one
	resource, namespace string
	selector            labels.Selector
	order               string // its place among the watches of its process
	next                int
	listed              []Change // what a list shows beside what it has brought, before next
	ready               []Change // what it brings now
	notified            chan struct{}
	result              chan watch.Event
	stop                chan struct{}
	once                sync.Once
}

func (s *Server) watch(p *Process, a clienttesting.WatchActionImpl) (watch.Interface, error) {
	from, err := strconv.Atoi(a.ListOptions.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := &cursor{
		server: s, process: p, resource: a.GetResource().Resource, namespace: a.GetNamespace(), selector: a.WatchRestrictions.Labels, next: from,
		order:    a.GetResource().Resource + " " + a.GetNamespace() + " " + a.WatchRestrictions.Labels.String(),
		notified: make(chan struct{}, 1), result: make(chan watch.Event), stop: make(chan struct{}),
	}
	s.mu.Lock()
	s.watches[w] = true
	s.mu.Unlock()
	go w.run()
	return w, nil
}

// DelayWatches keeps all watches of a resource from bringing anything, or lets them catch up.
func (s *Server) DelayWatches(resource string, delayed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delayed[resource], s.everDelayed[resource] = delayed, true
	s.notifyWatches(resource)
}

// WasDelayed reports whether a watch of a resource was ever delayed.
func (s *Server) WasDelayed(resource string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stepped || s.everDelayed[resource]
}

func (s *Server) notifyWatches(resource string) {
	for w := range s.watches {
		if w.resource == resource {
			notify(w.notified)
		}
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Stop ends the watch; its channel is closed soon after.
func (w *cursor) Stop() { w.once.Do(func() { close(w.stop) }) }

// ResultChan is what is watched.
func (w *cursor) ResultChan() <-chan watch.Event { return w.result }

func (w *cursor) run() {
	defer close(w.result)
	defer w.forget()
	for {
		for _, event := range w.events() {
			select {
			case w.result <- event:
			case <-w.stop:
				return
			}
		}
		select {
		case <-w.notified:
		case <-w.stop:
			return
		}
	}
}

func (w *cursor) forget() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	delete(w.server.watches, w)
}

// events returns what the watch brings now: in a stepped server what moves have let it bring, in
// others all changes since the last time.
func (w *cursor) events() []watch.Event {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	if w.isDelayed() {
		return nil
	}
	if !w.server.stepped {
		w.ready = slices.Concat(w.listed, w.server.log[w.next:])
		w.listed, w.next = nil, len(w.server.log)
	}
	var out []watch.Event
	for _, c := range w.ready {
		out = append(out, w.eventsOf(c)...)
	}
	w.ready = nil
	return out
}

// relist lets the watch go on after a list: of what it has not brought, that brings the difference
// only.
func (w *cursor) relist() {
	w.listed, w.next = w.difference(slices.Concat(w.listed, w.server.log[w.next:])), len(w.server.log)
}

func (w *cursor) isDelayed() bool {
	return w.server.delayed[w.resource] || w.process != nil && w.process.delayed[w.resource]
}

// difference returns how the objects that changed differ from what the watch has brought of them,
// the one that changed last at the end.
func (w *cursor) difference(of []Change) []Change {
	changes := map[Key]Change{}
	var order []Key
	for _, c := range of {
		if !w.brings(c) {
			continue
		}
		if before, changed := changes[c.Key]; changed {
			c.Old = before.Old
			order = slices.DeleteFunc(order, func(at Key) bool { return at == c.Key })
		}
		changes[c.Key], order = c, append(order, c.Key)
	}
	var out []Change
	for _, at := range order {
		if c := changes[at]; w.brings(c) {
			out = append(out, c)
		}
	}
	return out
}

func (w *cursor) eventsOf(c Change) []watch.Event {
	if !w.brings(c) {
		return nil
	}
	switch was, is := w.selects(c.Old), w.selects(c.Now); {
	case is && was:
		return []watch.Event{{Type: watch.Modified, Object: c.Now.DeepCopyObject()}}
	case is:
		return []watch.Event{{Type: watch.Added, Object: c.Now.DeepCopyObject()}}
	case was:
		return []watch.Event{{Type: watch.Deleted, Object: c.Old.DeepCopyObject()}}
	default:
		return nil
	}
}

func (w *cursor) selects(obj Object) bool {
	return obj != nil && w.selector.Matches(labels.Set(obj.GetLabels()))
}
