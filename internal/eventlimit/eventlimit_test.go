package eventlimit_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flex-provisioner/flex-provisioner/internal/eventlimit"
)

// blocked is a sink whose writes wait until it is closed.
type blocked chan struct{}

func (b blocked) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	<-b
	return e, nil
}

func (b blocked) Update(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	<-b
	return e, nil
}

func (b blocked) Patch(_ context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	<-b
	return e, nil
}

// recorder keeps the reasons of what was recorded.
type recorder []string

//nolint:revive // the arguments are those of events.EventRecorder
func (r *recorder) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	*r = append(*r, reason)
}

func TestNormalEventsAreDroppedBeforeWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dropped []string
		limit := &eventlimit.Limit{Most: 4, Dropped: func(eventType string) { dropped = append(dropped, eventType) }}
		var recorded recorder
		r, writes := limit.Recorder(&recorded), make(blocked)
		sink := limit.Sink(writes)
		say := func(eventType, reason string) { r.Eventf(nil, nil, eventType, reason, "", "") }
		say(corev1.EventTypeNormal, "first")
		for _, write := range []func(){
			func() { _, _ = sink.Create(t.Context(), nil) },
			func() { _, _ = sink.Patch(t.Context(), nil, nil) },
		} {
			go write()
		}
		synctest.Wait()
		say(corev1.EventTypeNormal, "half are under way")
		say(corev1.EventTypeWarning, "a warning")
		for range 2 {
			go func() { _, _ = sink.Update(t.Context(), nil) }()
		}
		synctest.Wait()
		if !r.IsFull() {
			t.Error("four writes are under way, and it is not full")
		}
		say(corev1.EventTypeWarning, "all are under way")
		close(writes)
		synctest.Wait()
		say(corev1.EventTypeNormal, "last")
		if want := []string{"first", "a warning", "last"}; !slices.Equal(recorded, want) {
			t.Errorf("recorded %q, want %q", recorded, want)
		}
		if want := []string{corev1.EventTypeNormal, corev1.EventTypeWarning}; !slices.Equal(dropped, want) {
			t.Errorf("dropped %q, want %q", dropped, want)
		}
	})
}
