package eventlimit

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
)

// Limit is how many events may wait to be written: a Normal one is dropped when half of that wait,
// a Warning when all do. An event is counted for the namespace of the claim that it is about or
// related to, whichever object it is about. Each namespace of which any wait has an equal share,
// and none of its events is dropped while fewer wait: a tenant who causes many has none of another
// dropped. An event that was accepted is written, also if others make the share smaller. So more
// than the Limit may wait: in n namespaces 1 + 1/2 + ... + 1/n times as many, 7 times in a
// thousand. The namespaces alternate, so that none within its share waits long.
//
// client-go's broadcaster writes the repeats of all events one after the other, under the lock that
// each new event needs (finishSeries in tools/events/event_broadcaster.go). By that a tenant could
// hold up the events of all others for minutes (TestRepeatsOfOneNamespaceHoldUpNoEventOfOthers). So
// the Sink only takes a write, and Write carries it out.
type Limit struct {
	// Dropped is called with the type of each event that is dropped; nil: it is not.
	Dropped func(eventType string)

	most int
	pace flowcontrol.RateLimiter
	// namespaces are those whose writes wait. One write of each is under way at a time: a repeat is not
	// written before its event.
	namespaces workqueue.TypedInterface[string]

	mu      sync.Mutex
	writes  map[string][]write // by namespaceOf, with the one that is under way
	pending int                // how many these are
}

// paceQPS and paceBurst are how fast events reach client-go's broadcaster. While a thousand have come
// that it has not passed on, it drops the next, and counts none: of 5,000 that came at once it lost half.
const paceQPS, paceBurst = 1000, 500

// New returns a Limit of this many writes that wait or are under way.
func New(most int) *Limit {
	return &Limit{
		most: most, pace: flowcontrol.NewTokenBucketRateLimiter(paceQPS, paceBurst),
		namespaces: workqueue.NewTyped[string](), writes: map[string][]write{},
	}
}

// Sink returns a sink that takes writes, which Write carries out later.
func (l *Limit) Sink() events.EventSink { return sink{l} }

// Recorder returns a recorder that drops events while too many wait.
func (l *Limit) Recorder(inner events.EventRecorder) *Recorder { return &Recorder{inner, l} }

func (l *Limit) isFull(eventType, namespace string) bool {
	most := l.most
	if eventType == corev1.EventTypeNormal {
		most /= 2
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending >= most && len(l.writes[namespace])*len(l.writes) >= most
}

func (l *Limit) drop(eventType string) {
	if l.Dropped != nil {
		l.Dropped(eventType)
	}
}

// Recorder is an events.EventRecorder that queues no more than its Limit, and waits for a moment only
// where hundreds of events come at once.
type Recorder struct {
	inner events.EventRecorder
	limit *Limit
}

// Eventf records an event, or drops it. An event that was recorded a few minutes ago is counted as
// its repeat, also if the objects have changed since.
//
//nolint:revive // the arguments are those of events.EventRecorder
func (r *Recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	regarding, related = lasting(regarding), lasting(related)
	if r.limit.isFull(eventType, namespaceOf(refOf(regarding), refOf(related))) {
		r.limit.drop(eventType)
		return
	}
	r.limit.pace.Accept()
	r.inner.Eventf(regarding, related, eventType, reason, action, note, args...)
}

// lasting returns a reference to an object that stays the same when the object changes. The key by
// which client-go recognizes a repeat has the references of the event, and its own have the
// resourceVersion. Kubernetes finds the events about an object by kind, name and UID.
func lasting(obj runtime.Object) runtime.Object {
	ref, err := reference.GetReference(scheme.Scheme, obj)
	if err != nil {
		return obj // nil, or the recorder logs the error
	}
	own := *ref
	own.ResourceVersion = ""
	return &own
}

// refOf returns what lasting has made of an object, or nil.
func refOf(lasting runtime.Object) *corev1.ObjectReference {
	ref, _ := lasting.(*corev1.ObjectReference)
	return ref
}

// namespaceOf returns the namespace for which an event is counted: that of its claim, or otherwise that
// of the object that it is about, which may be empty. The events about the PersistentVolumes of all
// tenants are in one namespace, and those about their Jobs are in that of the config.
func namespaceOf(regarding, related *corev1.ObjectReference) string {
	for _, ref := range []*corev1.ObjectReference{regarding, related} {
		if ref != nil && ref.Kind == "PersistentVolumeClaim" {
			return ref.Namespace
		}
	}
	return ptr.Deref(regarding, corev1.ObjectReference{}).Namespace
}

// IsFull reports whether a Warning that is counted for a namespace, which may be empty, would be dropped
// now. What it says has to be said again later.
func (r *Recorder) IsFull(namespace string) bool {
	return r.limit.isFull(corev1.EventTypeWarning, namespace)
}
