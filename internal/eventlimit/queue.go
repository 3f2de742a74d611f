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
	// another. They are those of client-go's broadcaster.
	tries = 12
	pause = 10 * time.Second
)

// verb is a method of events.EventSink.
type verb func(events.EventSink, context.Context, *eventsv1.Event) (*eventsv1.Event, error)

// write is one write of an event.
type write struct {
	do    verb
	event *eventsv1.Event
}

// sink takes the writes of a broadcaster.
type sink struct{ limit *Limit }

// Create implements events.EventSink. Its event was not dropped by the Recorder.
func (s sink) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.limit.put(event, events.EventSink.Create), nil
}

// Update implements events.EventSink.
func (s sink) Update(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.limit.put(event, events.EventSink.Update), nil
}

// Patch implements events.EventSink. It counts the repeats of an event, and is dropped while too many
// writes wait. An event that no longer exists is created again, as the broadcaster would (recordEvent).
func (s sink) Patch(_ context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	if s.limit.isFull(event.Type, namespaceOf(&event.Regarding, event.Related)) {
		s.limit.drop(event.Type)
		return event, nil
	}
	return s.limit.put(event, func(to events.EventSink, ctx context.Context, stored *eventsv1.Event) (*eventsv1.Event, error) {
		patched, err := to.Patch(ctx, stored, data)
		if apierrors.IsNotFound(err) {
			stored.ResourceVersion = ""
			return to.Create(ctx, stored)
		}
		return patched, err
	}), nil
}

// put lets a write wait. It returns the event, of which the broadcaster goes on to count the repeats: what
// is written is a copy.
func (l *Limit) put(event *eventsv1.Event, do verb) *eventsv1.Event {
	namespace := namespaceOf(&event.Regarding, event.Related)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes[namespace] = append(l.writes[namespace], write{do, event.DeepCopy()})
	l.pending++
	l.namespaces.Add(namespace)
	return event
}

// first returns the write of a namespace that waits longest.
func (l *Limit) first(namespace string) write {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes[namespace][0]
}

// done removes the first write of a namespace, whose next comes after those of the others.
func (l *Limit) done(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending--
	if left := l.writes[namespace][1:]; len(left) > 0 {
		l.writes[namespace] = left
		l.namespaces.Add(namespace)
	} else {
		delete(l.writes, namespace)
	}
	l.namespaces.Done(namespace)
}

// Write carries out writes, one after the other, until ctx ends. Several may run, with the same ctx.
func (l *Limit) Write(ctx context.Context, to events.EventSink) {
	defer context.AfterFunc(ctx, l.namespaces.ShutDown)()
	for {
		namespace, ended := l.namespaces.Get()
		if ended || ctx.Err() != nil {
			return
		}
		if err := l.first(namespace).carryOut(ctx, to); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to write an event", "namespace", namespace)
		}
		l.done(namespace)
	}
}

// carryOut tries a write again while the API server does not answer.
func (w write) carryOut(ctx context.Context, to events.EventSink) error {
	for n := 1; ; n++ {
		_, err := w.do(to, ctx, w.event)
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
