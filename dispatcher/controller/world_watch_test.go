package controller_test

import (
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// cursor is a watch: a place in the server's log that moves on.
type cursor struct {
	server              *server
	resource, namespace string
	selector            labels.Selector
	next                int
	woken               chan struct{}
	result              chan watch.Event
	stop                chan struct{}
	once                sync.Once
	of                  *process // whose it is
}

func (s *server) watch(p *process, a clienttesting.WatchActionImpl) (watch.Interface, error) {
	from, err := strconv.Atoi(a.ListOptions.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := &cursor{
		server: s, of: p, resource: a.GetResource().Resource, namespace: a.GetNamespace(), selector: a.WatchRestrictions.Labels, next: from,
		woken: make(chan struct{}, 1), result: make(chan watch.Event), stop: make(chan struct{}),
	}
	s.mu.Lock()
	s.watches[w] = true
	s.mu.Unlock()
	go w.run()
	return w, nil
}

func (w *cursor) wake() { wake(w.woken) }

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
		case <-w.woken:
		case <-w.stop:
			return
		}
	}
}

// hold keeps the watches of a resource from bringing anything, or lets them catch up.
func (s *server) hold(resource string, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[resource] = held
	for w := range s.watches {
		w.wake()
	}
}

// lag keeps one process's caches of a resource behind, or lets them catch up.
func (s *server) lag(p *process, resource string, behind bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.behind[resource] = behind
	for w := range s.watches {
		w.wake()
	}
}

func (w *cursor) forget() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	delete(w.server.watches, w)
}

// events are the changes since the last look, as far as the watch is about them.
func (w *cursor) events() []watch.Event {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	var out []watch.Event
	if w.server.held[w.resource] || w.of != nil && w.of.behind[w.resource] {
		return nil
	}
	for ; w.next < len(w.server.log); w.next++ {
		c := w.server.log[w.next]
		if c.resource != w.resource || w.namespace != "" && c.namespace != w.namespace {
			continue
		}
		was, is := w.sees(c.old), w.sees(c.now)
		switch {
		case is && was:
			out = append(out, watch.Event{Type: watch.Modified, Object: c.now.DeepCopyObject()})
		case is:
			out = append(out, watch.Event{Type: watch.Added, Object: c.now.DeepCopyObject()})
		case was:
			out = append(out, watch.Event{Type: watch.Deleted, Object: c.old.DeepCopyObject()})
		}
	}
	return out
}

func (w *cursor) sees(obj object) bool {
	return obj != nil && w.selector.Matches(labels.Set(obj.GetLabels()))
}
