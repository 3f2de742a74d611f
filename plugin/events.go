package plugin

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/internal/answerlimit"
)

// notSeen are the reasons of the events about what no object shows: the API server refuses a write of
// the dispatcher, or its ServiceAccount lacks permissions.
var notSeen = []string{reason.LaunchFailed, reason.WriteRefused, reason.WriteFailed, reason.ResultNotShown, reason.NamespaceNotServed}

// refusedWithin is how old the last event about a refused write may be. The dispatcher tries it again
// every few minutes, and of events that are repeats client-go writes the newest every 30 minutes.
const refusedWithin = 40 * time.Minute

// refusal returns the newest event that the write to come was refused, or nil. Without it a claim would
// be said to be at work for ever whose Job a quota or a policy refuses.
func (d *Dispatcher) refusal(ctx context.Context, o *observe.Observation, action decide.Action) *corev1.Event {
	if _, ok := action.(decide.AwaitSlot); ok || isIdle(action) {
		return nil
	}
	since := o.View.Now.Add(-refusedWithin)
	if last := newest(o.View.Runs); last != nil && last.Created.After(since) {
		since = last.Created
	}
	var about []corev1.Event
	for _, obj := range reportedOn(o) {
		events, _ := eventsAbout(ctx, d.Client, obj) // without them the rest is still true
		about = append(about, events...)
	}
	return newestOf(about, func(e corev1.Event) bool {
		return e.Type == corev1.EventTypeWarning && slices.Contains(notSeen, e.Reason) && !eventTime(e).Before(since)
	})
}

// reportedOn returns the objects on which a refused write is reported.
func reportedOn(o *observe.Observation) (about []metav1.Object) {
	switch {
	case o.Holder != nil:
		return append(about, o.Holder)
	case o.Claim != nil:
		return append(about, o.Claim)
	case o.PV != nil:
		return append(about, o.PV)
	}
	for _, job := range o.Jobs {
		about = append(about, job)
	}
	return about
}

// Whoever may create events in a namespace writes any number of any size about any object there: so
// many are read, and of so many bytes. The dispatcher itself writes few about one object.
const (
	mostEvents     = 500
	mostEventBytes = 4 << 20
)

// eventsAbout returns the events about an object, of any reporter. Those of an object without a
// namespace are in the namespace default.
func eventsAbout(ctx context.Context, client kubernetes.Interface, obj metav1.Object) ([]corev1.Event, error) {
	namespace := obj.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	list, err := client.CoreV1().Events(namespace).List(answerlimit.With(ctx, mostEventBytes), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(obj.GetUID())).String(), Limit: mostEvents,
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return !isAbout(e, obj.GetUID()) }), nil
}

func isAbout(e corev1.Event, uid types.UID) bool { return e.InvolvedObject.UID == uid }

// newestOf returns the newest event that is wanted, or nil.
func newestOf(events []corev1.Event, wanted func(corev1.Event) bool) *corev1.Event {
	var last *corev1.Event
	for i := range events {
		if e := &events[i]; wanted(*e) && (last == nil || !eventTime(*e).Before(eventTime(*last))) {
			last = e
		}
	}
	return last
}

// eventTime returns when an event was seen last. Which field has it depends on the reporter's
// client.
func eventTime(e corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	default:
		return e.EventTime.Time
	}
}
