package eventlimit

import (
	"context"
	"errors"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
)

const (
	// tries is how often a write is tried that the API server does not answer, pause how long after
	// another.
	tries = 12
	pause = 10 * time.Second
)

// sink takes the writes of a broadcaster.
type sink struct{ limit *Limit }

// Create implements events.EventSink. Its event was not dropped by the Recorder.
func (s sink) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	stored := event.DeepCopy()
	s.limit.put(event, func(ctx context.Context, to events.EventSink) error {
		_, err := to.Create(ctx, stored)
		return err
	})
	return event, nil
}

// Update implements events.EventSink.
func (s sink) Update(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	stored := event.DeepCopy()
	s.limit.put(event, func(ctx context.Context, to events.EventSink) error {
		_, err := to.Update(ctx, stored)
		return err
	})
	return event, nil
}

// Patch implements events.EventSink. It counts the repeats of an event, and is dropped while too many
// writes wait. An event that no longer exists is created again.
func (s sink) Patch(_ context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	if s.limit.isFull(event.Type, namespaceOf(&event.Regarding, event.Related)) {
		s.limit.drop(event.Type)
		return event, nil
	}
	stored := event.DeepCopy()
	s.limit.put(event, func(ctx context.Context, to events.EventSink) error {
		_, err := to.Patch(ctx, stored, data)
		if apierrors.IsNotFound(err) {
			stored.ResourceVersion = ""
			_, err = to.Create(ctx, stored)
		}
		return err
	})
	return event, nil
}

// put lets a write wait.
func (l *Limit) put(event *eventsv1.Event, do write) {
	namespace := namespaceOf(&event.Regarding, event.Related)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of, l.queues = map[string]int64{}, map[string][]write{}
	}
	if len(l.queues[namespace]) == 0 {
		l.waiting = append(l.waiting, namespace)
	}
	l.queues[namespace] = append(l.queues[namespace], do)
	l.pending++
	l.of[namespace]++
	l.notify()
}

// notify lets one writer look for a write.
func (l *Limit) notify() {
	select {
	case l.signal() <- struct{}{}:
	default:
	}
}

func (l *Limit) signal() chan struct{} {
	if l.changed == nil {
		l.changed = make(chan struct{}, 1)
	}
	return l.changed
}

// next takes the first write of the namespace that waits longest, or nil and what has a token when there
// may be one.
func (l *Limit) next() (namespace string, do write, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return "", nil, l.signal()
	}
	namespace, l.waiting = l.waiting[0], l.waiting[1:]
	queue := l.queues[namespace]
	if do = queue[0]; len(queue) == 1 {
		delete(l.queues, namespace)
	} else {
		l.queues[namespace] = queue[1:]
		l.waiting = append(l.waiting, namespace)
	}
	if len(l.waiting) > 0 {
		l.notify()
	}
	return namespace, do, nil
}

// done counts a write no longer.
func (l *Limit) done(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending--
	if l.of[namespace]--; l.of[namespace] == 0 {
		delete(l.of, namespace)
	}
}

// Write carries out writes, one after the other, until ctx ends. Several may run.
func (l *Limit) Write(ctx context.Context, to events.EventSink) {
	for ctx.Err() == nil {
		namespace, do, changed := l.next()
		if do == nil {
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		if err := writeOne(ctx, to, do); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to write an event", "namespace", namespace)
		}
		l.done(namespace)
	}
}

// writeOne carries out one write, and tries it again while the API server does not answer.
func writeOne(ctx context.Context, to events.EventSink, do write) error {
	for n := 1; ; n++ {
		err := do(ctx, to)
		if err == nil || n == tries || errors.As(err, new(apierrors.APIStatus)) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
