package slots

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
)

// callPaced calls back with Slots over nothing, whose class launches those that are offered a slot
// as long as that is asked, and a function that returns how many offers there were.
func callPaced(t *testing.T, do func(s *Slots, offers func() int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		caches, err := cluster.NewStatic(fake.NewClientset(), []string{"home"})
		if err != nil {
			t.Fatal(err)
		}
		var s *Slots
		var offers atomic.Int32
		queue := workqueue.NewTypedDelayingQueue[ClassKey]()
		defer queue.ShutDown()
		s = New(caches, clock.RealClock{}, queue.AddAfter)
		go func() {
			for {
				at, quit := queue.Get()
				if quit {
					return
				}
				for _, uid := range s.Begin(at) {
					offers.Add(1)
					for _, other := range s.Join(uid, "g", 7) {
						s.Launched(other)
					}
					s.Use(jobOf(string(uid)))
					s.Launched(uid)
				}
				if after := s.Again(at); after > 0 {
					queue.AddAfter(at, after)
				}
				queue.Done(at)
			}
		}()
		do(s, func() int {
			time.Sleep(gatherFor)
			synctest.Wait()
			return int(offers.Load())
		})
	})
}

func awaitInGroup(s *Slots, uids ...string) {
	for _, uid := range uids {
		w := waiting(uid, 100)
		w.Group, w.Batch = "g", 8
		s.Await(class, w)
	}
}

func TestAGroupGetsASlotAtOnceAndThenAfterAWhile(t *testing.T) {
	callPaced(t, func(s *Slots, offers func() int) {
		awaitInGroup(s, "first")
		if n := offers(); n != 1 {
			t.Fatalf("%d offers, want one at once", n)
		}
		awaitInGroup(s, "a", "b", "c")
		time.Sleep(pace - 2*gatherFor)
		if n := offers(); n != 1 {
			t.Fatalf("%d offers before the pace has ended", n)
		}
		time.Sleep(2 * gatherFor)
		if n := offers(); n != 2 {
			t.Errorf("%d offers after the pace has ended, want one more for the three that wait", n)
		}
		time.Sleep(2 * pace)
		if n := offers(); n != 2 {
			t.Errorf("%d offers at last, and the others did not join", n)
		}
	})
}

// Deletes are paced for longer, but not once no other one follows.
func TestTheLastDeletesOfABurstDoNotWaitForThePaceToEnd(t *testing.T) {
	paceDeletes := func(s *Slots, n int, every time.Duration) {
		for i := range n {
			w := waiting(fmt.Sprint("uid-", i), 100)
			w.Verb, w.Group, w.Batch = contract.Delete, "g", 64
			s.Await(class, w)
			time.Sleep(every)
		}
	}
	tests := map[string]struct {
		n     int
		every time.Duration
		want  int
	}{
		"while others follow":     {20, pace / 5, 1},
		"when none has followed":  {2, pace + time.Millisecond, 2},
		"when the pace has ended": {26, pace / 5, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			callPaced(t, func(s *Slots, offers func() int) {
				paceDeletes(s, tc.n, tc.every)
				if n := offers(); n != tc.want {
					t.Errorf("%d offers, want %d", n, tc.want)
				}
			})
		})
	}
}

func TestAGroupThatFillsAJobIsNotHeldUp(t *testing.T) {
	callPaced(t, func(s *Slots, offers func() int) {
		awaitInGroup(s, "first")
		offers()
		for i := range 15 {
			awaitInGroup(s, fmt.Sprint("uid-", i))
		}
		if n := offers(); n != 2 {
			t.Errorf("%d offers, want one for the first and one for the eight that came first after it", n)
		}
	})
}

func TestWaitersThatShareNoJobAreNotHeldUp(t *testing.T) {
	callPaced(t, func(s *Slots, offers func() int) {
		awaitInGroup(s, "a", "b", "c")
		s.Await(class, waiting("alone", 100))
		s.Await(class, waiting("alone-too", 100))
		if n := offers(); n != 3 {
			t.Errorf("%d offers, want one for the group and two for those that share no Job", n)
		}
	})
}

// All slots are used, and the waiters fill a Job. The loop of the class was once to look again at
// once.
func TestAPaceThatHasEndedIsForgotten(t *testing.T) {
	s, clock := slotsWith(t, jobOf("a"))
	s.paced[groupKey{class, "g"}] = paced{since: began, lasts: pace}
	for _, uid := range []string{"b", "c"} {
		w := waiting(uid, 1)
		w.Group, w.Batch = "g", 2
		s.Await(class, w)
	}
	for _, want := range []time.Duration{pace, 0} {
		if uids, after := s.Begin(class), s.Again(class); len(uids) != 0 || after != want {
			t.Errorf("%v are offered a slot, and the next is after %s, want none, and %s", uids, after, want)
		}
		clock.Step(pace)
	}
}
