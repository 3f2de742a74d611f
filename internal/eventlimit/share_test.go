package eventlimit_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"github.com/flex-provisioner/flex-provisioner/internal/eventlimit"
)

// warn records a Warning about a claim, whose reason is its name.
func warn(r *eventlimit.Recorder, namespace, name string) {
	r.Eventf(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, nil, corev1.EventTypeWarning, name, "", "")
}

// A tenant that creates and deletes claims faster than events are written once had the events of all
// others dropped, then all but the first that waits, and held up what waits for an event about what is
// left in the storage.
func TestEventsOfOneNamespaceDropNoneOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := eventlimit.New(6)
		var recorded recorder
		r, writes := limit.Recorder(&recorded), make(blocked)
		sink := limit.Sink()
		startWriting(t, limit, writes)
		begin := func(namespace string) { _, _ = sink.Create(t.Context(), eventIn(namespace)) }
		for range 19 {
			begin("busy")
		}
		warn(r, "busy", "one more")
		for _, name := range []string{"first", "second", "third"} {
			warn(r, "quiet", name)
			begin("quiet")
		}
		warn(r, "quiet", "above the share of two")
		r.Eventf(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}, nil, corev1.EventTypeNormal, "of a volume", "", "")
		begin("")
		if !r.IsFull("quiet") || r.IsFull("") || !r.IsFull("busy") || r.IsFull("other") {
			t.Error("of a namespace below its share none is dropped, and of the others each is")
		}
		begin("")
		if !r.IsFull("") {
			t.Error("a namespace has the share of three, and it is not full")
		}
		close(writes)
		synctest.Wait()
		if want := []string{"first", "second", "third", "of a volume"}; !slices.Equal(recorded, want) {
			t.Errorf("recorded %q, want %q", recorded, want)
		}
	})
}

// A burst of one tenant is written if others have few events.
func TestANamespaceAboveItsShareLosesNoneWhileThereIsRoom(t *testing.T) {
	limit := eventlimit.New(6)
	for _, namespace := range []string{"busy", "busy", "busy", "busy", "quiet"} {
		_, _ = limit.Sink().Create(t.Context(), eventIn(namespace))
	}
	if limit.Recorder(nil).IsFull("busy") {
		t.Error("five of six wait, and one more is dropped")
	}
}

// Namespaces that come one after the other have their share each while those before have more.
func TestEventsOfManyNamespacesThatWaitAreBounded(t *testing.T) {
	const most, namespaces = 100, 200
	limit := eventlimit.New(most)
	var recorded recorder
	r := limit.Recorder(&recorded)
	for n := range namespaces {
		namespace := fmt.Sprint("ns-", n)
		for !r.IsFull(namespace) {
			recorded = append(recorded, namespace)
			_, _ = limit.Sink().Create(t.Context(), eventIn(namespace))
		}
	}
	if bound := most*(1+math.Log(most)) + namespaces; float64(len(recorded)) > bound || len(recorded) < namespaces {
		t.Errorf("%d events wait, want at least one of each namespace, and at most %.0f", len(recorded), bound)
	}
}

// broadcast starts a broadcaster and its writers, and returns the recorder of events that goes through all.
func broadcast(t *testing.T, limit *eventlimit.Limit, to events.EventSink, writers int) *eventlimit.Recorder {
	t.Helper()
	for range writers {
		startWriting(t, limit, to)
	}
	broadcaster := events.NewBroadcaster(limit.Sink())
	t.Cleanup(broadcaster.Shutdown)
	if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return limit.Recorder(broadcaster.NewRecorder(scheme.Scheme, "flex-provisioner.io"))
}

// The sizes are those of the dispatcher, which writes 80 events a second.
func TestANamespaceWithFewEventsLosesNone(t *testing.T) {
	for _, others := range []int{1, 10, 70} { // 20 events are the share of 80
		synctest.Test(t, func(t *testing.T) {
			limit, sink, dropped := eventlimit.New(1600), &slow{}, 0
			limit.Dropped = func(string) { dropped++ }
			r := broadcast(t, limit, sink, 8)
			caused := 0
			cause := func(n int) { // 200 a second
				for range n {
					caused++
					warn(r, fmt.Sprint("busy-", caused%others), fmt.Sprint("claim-", caused))
					time.Sleep(5 * time.Millisecond)
				}
			}
			cause(30 * 200)
			for i := range 20 {
				warn(r, "quiet", fmt.Sprint("claim-", i))
				cause(10)
			}
			cause(20 * 200)
			if got := sink.of("quiet"); got != 20 || dropped == 0 {
				t.Errorf("%d namespaces cause more events than are written, of which %d are dropped: of 20 events of another %d are written after 20 s", others, dropped, got)
			}
		})
	}
}

// A new leader reports all that Jobs have left in the storage, one after the other.
func TestEventsThatComeAtOnceAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 3000
		limit, sink := eventlimit.New(1600), &slow{}
		r := broadcast(t, limit, sink, 100)
		last, atOnce := time.Now(), 0
		for i := range many {
			warn(r, fmt.Sprint("ns-", i), "data")
			if atOnce++; time.Now().After(last) {
				last, atOnce = time.Now(), 0
			}
			if atOnce == 1000 {
				t.Fatal("as many events have come at once as client-go's broadcaster queues")
			}
		}
		time.Sleep(time.Minute)
		sink.mu.Lock()
		defer sink.mu.Unlock()
		if got := len(sink.written); got != many {
			t.Errorf("%d of %d events are written, and none was dropped", got, many)
		}
	})
}
