package eventlimit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"

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
		limit := eventlimit.New(4)
		limit.Dropped = func(eventType string) { dropped = append(dropped, eventType) }
		var recorded recorder
		r, writes := limit.Recorder(&recorded), make(blocked)
		sink := limit.Sink()
		startWriting(t, limit, writes)
		say := func(eventType, reason string) { r.Eventf(nil, nil, eventType, reason, "", "") }
		say(corev1.EventTypeNormal, "first")
		_, _ = sink.Create(t.Context(), eventIn(""))
		_, _ = sink.Patch(t.Context(), eventIn(""), nil)
		say(corev1.EventTypeNormal, "half are under way")
		say(corev1.EventTypeWarning, "a warning")
		for range 2 {
			_, _ = sink.Update(t.Context(), eventIn(""))
		}
		if !r.IsFull("") {
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

// startWriting writes events until the test ends.
func startWriting(t *testing.T, limit *eventlimit.Limit, to events.EventSink) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() { stop(); <-ended })
	go func() { limit.Write(ctx, to); close(ended) }()
}

// eventIn returns an event about a claim in a namespace, or about a PersistentVolume.
func eventIn(namespace string) *eventsv1.Event {
	if namespace == "" {
		return &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault}, Regarding: corev1.ObjectReference{Kind: "PersistentVolume", Name: "pv"}}
	}
	return &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Regarding: *claimIn(namespace)}
}

func claimIn(namespace string) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: namespace, Name: "data"}
}

// Events about all PersistentVolumes are in one namespace, and those about Jobs in that of their config.
func TestEventsAboutVolumesAndJobsOfOneTenantDropNoneOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := eventlimit.New(4)
		var recorded recorder
		r, writes := limit.Recorder(&recorded), make(blocked)
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "delete-1-1"}}
		for _, about := range []corev1.ObjectReference{{Kind: "PersistentVolume", Name: "pv"}, {Kind: "Job", Namespace: "own", Name: "delete-2-1"}} {
			for range 4 {
				_, _ = limit.Sink().Create(t.Context(), &eventsv1.Event{Regarding: about, Related: claimIn("busy")})
			}
		}
		startWriting(t, limit, writes)
		for _, about := range []runtime.Object{pv, job} {
			for _, of := range []string{"busy", "quiet"} {
				r.Eventf(about, claimIn(of), corev1.EventTypeWarning, of, "", "")
			}
		}
		if r.IsFull("quiet") || !r.IsFull("busy") {
			t.Error("only of the tenant whose events wait is it full")
		}
		close(writes)
		synctest.Wait()
		if want := []string{"quiet", "quiet"}; !slices.Equal(recorded, want) {
			t.Errorf("recorded %q, want %q", recorded, want)
		}
	})
}

// Between two events about a claim something almost always writes on it: the PV controller, the
// scheduler, the dispatcher itself. The Job that is the cause changes as well.
func TestAnEventIsARepeatAlsoIfItsObjectsHaveChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, limit := fake.NewClientset(), eventlimit.New(4)
		startWriting(t, limit, &events.EventSinkImpl{Interface: client.EventsV1()})
		broadcaster := events.NewBroadcaster(limit.Sink())
		defer broadcaster.Shutdown()
		if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := limit.Recorder(broadcaster.NewRecorder(scheme.Scheme, "flex-provisioner.io"))
		for _, version := range []string{"7", "8"} {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "data", UID: "1", ResourceVersion: version}}
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "provision-1-1", UID: "2", ResourceVersion: "1" + version}}
			r.Eventf(claim, job, corev1.EventTypeWarning, "WriteRefused", "WriteRefused", "a policy refuses it")
			time.Sleep(time.Second)
			if claim.ResourceVersion != version || job.ResourceVersion != "1"+version {
				t.Errorf("the objects have been changed: %q, %q", claim.ResourceVersion, job.ResourceVersion)
			}
		}
		list, err := client.EventsV1().Events("app").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("there are the events %+v, %v; want one", list.Items, err)
		}
		e := list.Items[0]
		if e.Series == nil || e.Series.Count != 2 {
			t.Errorf("it was counted as %+v, want 2", e.Series)
		}
		about := corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "app", Name: "data", UID: "1"}
		cause := corev1.ObjectReference{Kind: "Job", APIVersion: "batch/v1", Namespace: "own", Name: "provision-1-1", UID: "2"}
		if e.Regarding != about || e.Related == nil || *e.Related != cause {
			t.Errorf("it is about %+v and %+v", e.Regarding, e.Related)
		}
	})
}

// slow is a sink that takes its time, and keeps the namespaces of what it has written.
type slow struct {
	mu      sync.Mutex
	written []string
}

func (s *slow) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	time.Sleep(100 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = append(s.written, e.Namespace)
	return e, nil
}

func (s *slow) Update(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	return s.Create(ctx, e)
}

func (s *slow) Patch(ctx context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	return s.Create(ctx, e)
}

func (s *slow) of(namespace string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(s.written), func(ns string) bool { return ns != namespace }))
}

// client-go's broadcaster writes all repeats of events every six minutes, under the lock that each new event
// needs. The repeats of one tenant held up the events of all others for minutes.
func TestRepeatsOfOneNamespaceHoldUpNoEventOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, sink := eventlimit.New(10_000), &slow{}
		startWriting(t, limit, sink)
		broadcaster := events.NewBroadcaster(limit.Sink())
		defer broadcaster.Shutdown()
		if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := limit.Recorder(broadcaster.NewRecorder(scheme.Scheme, "flex-provisioner.io"))
		say := func(namespace, name string) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
			r.Eventf(claim, nil, corev1.EventTypeWarning, "SourceNotFound", "x", "no such source")
		}
		for range 2 { // the second is a repeat
			for i := range 900 { // as many as the broadcaster takes at once
				say("busy", fmt.Sprint("claim-", i))
			}
			time.Sleep(100 * time.Second)
		}
		before := sink.of("busy")
		time.Sleep(2*6*time.Minute - 200*time.Second + 3*time.Second) // finishSeries has begun
		if n := sink.of("busy"); n == before || n == before+900 {
			t.Fatalf("%d repeats are being written", n-before)
		}
		say("quiet", "data")
		time.Sleep(time.Second)
		if sink.of("quiet") != 1 {
			t.Errorf("the event of another namespace waits for the repeats: written %d", sink.of("busy")-before)
		}
	})
}

// An event that no longer exists is created again, and the API server is asked again when it does not answer.
func TestAWriteIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, limit, failures := fake.NewClientset(), eventlimit.New(4), 2
		client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			if failures--; failures >= 0 {
				return true, nil, errors.New("connection refused")
			}
			return false, nil, nil
		})
		startWriting(t, limit, &events.EventSinkImpl{Interface: client.EventsV1()})
		event := eventIn("app")
		event.Name = "data.1"
		_, _ = limit.Sink().Patch(t.Context(), event, []byte(`{"note":"again"}`))
		time.Sleep(time.Minute)
		if _, err := client.EventsV1().Events("app").Get(t.Context(), "data.1", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
}
