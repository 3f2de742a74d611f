package slots

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
)

// callPaced calls back with Slots over nothing, and a function that returns how many slots are
// assigned.
func callPaced(t *testing.T, do func(s *Slots, assigned func() int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		caches, err := cluster.NewStatic(fake.NewClientset(), []string{"home"})
		if err != nil {
			t.Fatal(err)
		}
		s := New(caches, clock.RealClock{}, func(types.UID) {})
		do(s, func() int {
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.load(class, 100).Busy()
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
	callPaced(t, func(s *Slots, assigned func() int) {
		awaitInGroup(s, "a", "b", "c")
		if n := assigned(); n != 1 {
			t.Fatalf("%d slots for waiters that can share a Job, want 1 at once", n)
		}
		s.Use("a", jobOf("a")) // alone
		time.Sleep(pace - time.Millisecond)
		if n := assigned(); n != 1 {
			t.Fatalf("%d slots before the pace has ended", n)
		}
		time.Sleep(2 * time.Millisecond)
		if n := assigned(); n != 2 {
			t.Errorf("%d slots after the pace has ended, want one more for both that wait", n)
		}
		s.Use("b", jobOf("b"))
		time.Sleep(2 * pace)
		if n := assigned(); n != 3 {
			t.Errorf("%d slots at last, and the third waiter did not join the second", n)
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
			if i == 0 {
				s.Use("uid-0", jobOf("uid-0"))
			}
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
			callPaced(t, func(s *Slots, assigned func() int) {
				paceDeletes(s, tc.n, tc.every)
				if n := assigned(); n != tc.want {
					t.Errorf("%d slots, want %d", n, tc.want)
				}
			})
		})
	}
}

func TestAGroupThatFillsAJobIsNotHeldUp(t *testing.T) {
	callPaced(t, func(s *Slots, assigned func() int) {
		awaitInGroup(s, "first")
		s.Use("first", jobOf("first"))
		for i := range 15 {
			awaitInGroup(s, fmt.Sprint("uid-", i))
		}
		if n := assigned(); n != 2 {
			t.Errorf("%d slots, want one for the first and one for the eight that came first after it", n)
		}
	})
}

func TestWaitersThatShareNoJobAreNotHeldUp(t *testing.T) {
	callPaced(t, func(s *Slots, assigned func() int) {
		awaitInGroup(s, "a", "b", "c")
		s.Await(class, waiting("alone", 100))
		s.Await(class, waiting("alone-too", 100))
		if n := assigned(); n != 3 {
			t.Errorf("%d slots, want one for the group and two for those that share no Job", n)
		}
	})
}
