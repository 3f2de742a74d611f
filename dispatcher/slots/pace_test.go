package slots

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
)

// paced calls back with Slots over nothing, and a function that returns how many slots are assigned.
func paced(t *testing.T, do func(s *Slots, assigned func() int)) {
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
			return s.load(class).Busy()
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
	paced(t, func(s *Slots, assigned func() int) {
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

func TestAGroupThatFillsAJobIsNotHeldUp(t *testing.T) {
	paced(t, func(s *Slots, assigned func() int) {
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
	paced(t, func(s *Slots, assigned func() int) {
		awaitInGroup(s, "a", "b", "c")
		s.Await(class, waiting("alone", 100))
		s.Await(class, waiting("alone-too", 100))
		if n := assigned(); n != 3 {
			t.Errorf("%d slots, want one for the group and two for those that share no Job", n)
		}
	})
}
