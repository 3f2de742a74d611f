package slots

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
)

// end makes the cache show that a pod has ended. No event enqueues anything.
func end(t *testing.T, s *Slots, pod *corev1.Pod) {
	t.Helper()
	ended := pod.DeepCopy()
	ended.Status.Phase = corev1.PodFailed
	if err := s.caches.Pods["home"].Update(ended); err != nil {
		t.Fatal(err)
	}
}

// A UID is reconciled many times, and what it has is counted with all other Jobs of its class.
func TestTheJobsOfAClassAreNotCountedForEachReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := podOf("a", corev1.PodStatus{Phase: corev1.PodRunning})
		s, clock, enqueued := slotsWith(t, jobOf("a"), pod)
		s.Await(class, waiting("b", 1)) // the Jobs are counted
		end(t, s, pod)
		for range 10 {
			s.End("a", nil, 0)
		}
		if len(*enqueued) != 0 {
			t.Error("the Jobs were counted again within the pause")
		}
		clock.Step(countPause)
		synctest.Wait()
		if len(*enqueued) != 1 {
			t.Errorf("%v have a slot after the pause, want b", *enqueued)
		}
	})
}

func TestASlotIsAssignedAtOnceWhenNoneWasForAWhile(t *testing.T) {
	pod := podOf("a", corev1.PodStatus{Phase: corev1.PodRunning})
	s, clock, enqueued := slotsWith(t, jobOf("a"), pod)
	s.Await(class, waiting("b", 1))
	end(t, s, pod)
	clock.Step(countPause)
	if s.End("a", nil, 0); len(*enqueued) != 1 {
		t.Errorf("%v have a slot, want b", *enqueued)
	}
}

// All that wait for a slot of a class are reconciled, whatever happens to their claims.
func TestTheJobsOfAFullClassAreNotCountedForEachThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := podOf("a", corev1.PodStatus{Phase: corev1.PodRunning})
		s, clock, enqueued := slotsWith(t, jobOf("a"), pod)
		s.Await(class, waiting("b", 1))
		end(t, s, pod)
		if s.Await(class, waiting("c", 1)); len(*enqueued) != 0 {
			t.Error("the Jobs were counted again within the pause")
		}
		clock.Step(countPause)
		synctest.Wait()
		if len(*enqueued) != 1 {
			t.Errorf("%v have a slot after the pause, want one of the two", *enqueued)
		}
	})
}
