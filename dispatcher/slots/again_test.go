package slots

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
)

// fullClass returns Slots of a class whose only slot a pod uses, and for which a UID waits, and how
// the class is enqueued.
func fullClass(t *testing.T) (*Slots, *clocktesting.FakeClock, *[]time.Duration) {
	t.Helper()
	caches, err := cluster.NewStatic(fake.NewClientset(), []string{"home"}, jobOf("a"), podOf("a", corev1.PodStatus{Phase: corev1.PodRunning}))
	if err != nil {
		t.Fatal(err)
	}
	clock, enqueued := clocktesting.NewFakeClock(began), &[]time.Duration{}
	s := New(caches, clock, func(_ ClassKey, after time.Duration) { *enqueued = append(*enqueued, after) })
	s.Await(class, waiting("b", 1))
	if uids := s.Begin(class); len(uids) != 0 { // the Jobs are counted
		t.Fatalf("%v are offered a slot, and no slot is free", uids)
	}
	*enqueued = nil
	return s, clock, enqueued
}

// A UID is reconciled many times, and what it has is counted with all other Jobs of its class. All
// that wait for a slot of a class are reconciled, too, whatever happens to their claims.
func TestTheJobsOfAFullClassAreNotCountedForEachReconcile(t *testing.T) {
	for name, reconcile := range map[string]func(*Slots){
		"of a UID that has a Job": func(s *Slots) { s.FreedSoon("a") },
		"of a UID that waits":     func(s *Slots) { s.Await(class, waiting("c", 1)) },
	} {
		s, clock, enqueued := fullClass(t)
		clock.Step(countPause / 4)
		reconcile(s)
		clock.Step(countPause)
		reconcile(s)
		if want := []time.Duration{countPause * 3 / 4, gatherFor}; !slices.Equal(*enqueued, want) {
			t.Errorf("%s: the class is enqueued after %v, want %v", name, *enqueued, want)
		}
	}
}

func TestWhatHasEndedIsCountedAtOnceIfAUIDWaits(t *testing.T) {
	s, _, enqueued := fullClass(t)
	s.Freed(class)
	s.Leave("b")
	s.Freed(class)
	s.FreedSoon("a")
	if want := []time.Duration{0}; !slices.Equal(*enqueued, want) {
		t.Errorf("the class is enqueued after %v, want %v", *enqueued, want)
	}
}

// Otherwise the claims of a namespace that uses no slot would keep the loop of the class busy.
func TestAfterAnOfferInVainTheNextFollowsInAMoment(t *testing.T) {
	s, _ := slotsWith(t)
	s.Await(class, waiting("a", 1))
	s.Await(class, waiting("b", 1))
	if after := s.Again(class); after != 0 {
		t.Errorf("slots are offered after %s, and nothing has changed", after)
	}
	s.End(s.Begin(class)[0])
	if after := s.Again(class); after != countPause {
		t.Errorf("the next slot is offered after %s", after)
	}
	var enqueued time.Duration
	s.enqueue = func(_ ClassKey, after time.Duration) { enqueued = after }
	if s.Await(class, waiting("a", 1)); enqueued != countPause {
		t.Errorf("it is offered the next after %s", enqueued)
	}
}
