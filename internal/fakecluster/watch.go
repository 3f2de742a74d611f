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
	until               int // in a stepped server: where it may move on to
	listed              int // up to where it brings the difference only, as a list does
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

// events returns the changes since the last time, as far as the watch is about them.
func (w *cursor) events() []watch.Event {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	var out []watch.Event
	if w.isDelayed() {
		return nil
	}
	if w.listed > w.next {
		out, w.next = w.difference(w.listed), w.listed
	}
	end := len(w.server.log)
	if w.server.stepped {
		end = w.until
	}
	for ; w.next < end; w.next++ {
		out = append(out, w.eventsOf(w.server.log[w.next])...)
	}
	return out
}

func (w *cursor) isDelayed() bool {
	return w.server.delayed[w.resource] || w.process != nil && w.process.delayed[w.resource]
}

// difference returns how the objects that changed differ from what the watch has brought of them,
// the one that changed last at the end.
func (w *cursor) difference(end int) []watch.Event {
	changes := map[Key]Change{}
	var order []Key
	for _, c := range w.server.log[w.next:end] {
		if !w.brings(c) {
			continue
		}
		if before, changed := changes[c.Key]; changed {
			c.Old = before.Old
			order = slices.DeleteFunc(order, func(at Key) bool { return at == c.Key })
		}
		changes[c.Key], order = c, append(order, c.Key)
	}
	var out []watch.Event
	for _, at := range order {
		out = append(out, w.eventsOf(changes[at])...)
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
