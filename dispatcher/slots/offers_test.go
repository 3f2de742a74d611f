package slots

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// A UID is looked at while it is offered a slot: it is offered no other.
func TestAUIDIsOfferedOneSlotAtATime(t *testing.T) {
	s, _ := slotsWith(t)
	s.Await(class, waiting("a", 2))
	s.Begin(class)
	s.Await(class, waiting("a", 2))
	if n := s.Waiting()[class][Flow{"app", contract.Provision}]; n != 0 || !s.Awaits("a") {
		t.Errorf("%d wait beside the one that is offered a slot", n)
	}
	s.Launched("a")
	if uids := s.Begin(class); len(uids) != 0 || s.Awaits("a") {
		t.Errorf("%v are offered a slot, and it was launched", uids)
	}
}

// The loop has panicked, and has not ended the offers.
func TestAnOfferThatWasNotEndedIsMadeAgain(t *testing.T) {
	s, _ := slotsWith(t)
	w := waiting("a", 1)
	w.Group, w.Batch = "g", 2
	s.Await(class, w)
	w.UID = "b"
	s.Await(class, w)
	s.Begin(class)
	s.Join("a", "g", 1)
	if uids := s.Begin(class); !slices.Equal(uids, []types.UID{"a"}) {
		t.Errorf("%v are offered one again, want a", uids)
	}
	if after := s.Again(class); after > time.Millisecond {
		t.Errorf("it has it after %s", after)
	}
	if uids := s.Join("a", "g", 1); !slices.Equal(uids, []types.UID{"b"}) {
		t.Errorf("%v join, want b, which waits again", uids)
	}
}

// Several Jobs are launched at a time, and none is created yet.
func TestJobsThatAreLaunchedTogetherAreNoWiderThanTheClass(t *testing.T) {
	const limit = 16
	s, _ := slotsWith(t)
	for _, uid := range []string{"a", "b", "c", "d"} {
		s.Await(class, waiting(uid, limit))
	}
	uids, all := s.Begin(class), 0
	for _, uid := range uids {
		all += s.Widen(uid, 8, limit)
	}
	if len(uids) != 4 || all > limit || all < limit/2 {
		t.Errorf("the Jobs of %v run %d scripts at a time, of %d", uids, all, limit)
	}
	before := s.load(class, limit).Busy()
	s.Use(jobOf("a"))
	if after := s.load(class, limit).Busy(); after > before {
		t.Errorf("%d slots are used, and %d before: the Job counts beside its offer", after, before)
	}
}

// Its config has changed meanwhile, and it is not launched after all.
func TestAUIDThatIsOfferedASlotWaitsAsItWouldNow(t *testing.T) {
	s, _ := slotsWith(t)
	s.Await(class, waiting("a", 1))
	s.Begin(class)
	s.Await(class, waiting("a", 3))
	s.Return("a")
	if limit := s.queues[class].Limit(); limit != 3 {
		t.Errorf("a limit of %d, want that of the newer config", limit)
	}
}
