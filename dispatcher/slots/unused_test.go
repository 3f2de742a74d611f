package slots

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
)

// UIDs of other namespaces get slots and never use them, as a tenant's do that edits the size of
// its claims: each slot is spent on a write on the claim's status. The claims of another namespace
// come in between, whether or not the namespaces have Jobs.
func TestANamespaceThatUsesNoSlotHoldsUpNoOther(t *testing.T) {
	for name, test := range map[string]struct {
		busy     []string
		haveJobs bool
		each     int // UIDs of each namespace
	}{
		"one namespace that has a Job":      {[]string{"busy"}, true, 2},
		"one without a Job":                 {[]string{"busy"}, false, 2},
		"several without a Job, one by one": {[]string{"busy-0", "busy-1", "busy-2"}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			caches, err := cluster.New(fake.NewClientset(), contract.ProvisionerName, []string{"home"}, nil, cluster.Handlers{})
			if err != nil {
				t.Fatal(err)
			}
			clock := clocktesting.NewFakeClock(time.Now())
			s := New(caches, clock, func(ClassKey, time.Duration) {})
			var haveJobs []string
			if test.haveJobs {
				haveJobs = test.busy
			}
			for i, ns := range slices.Concat(haveJobs, []string{"waits"}) { // which was served last
				job := jobOfNamespace(fmt.Sprint("old-", i), ns)
				job.Name, job.CreationTimestamp = fmt.Sprint("old-", i), metav1.NewTime(time.Unix(int64(i+1), 0))
				s.Observe(job)
			}
			flows := map[string]string{"waits": "waits"} // by UID
			await := func(uid string) {
				s.Await(ClassKey{"home", "x"}, Waiter{UID: uid, Limit: 1, Flow: Flow{Namespace: flows[uid], Verb: "expand"}, Since: clock.Now()})
			}
			for i := range test.each {
				for _, ns := range test.busy {
					uid := fmt.Sprint(ns, "-", i)
					flows[uid] = ns
					await(uid)
				}
			}
			await("waits")
			for i := range 100 {
				uids := s.Begin(ClassKey{"home", "x"})
				if len(uids) != 1 {
					t.Fatalf("%v are offered a slot, and there is one slot", uids)
				}
				if uids[0] == "waits" {
					t.Logf("it was offered one after %d of the others", i)
					return
				}
				clock.Step(10 * time.Millisecond)
				s.End(uids[0]) // a write came first
				await(string(uids[0]))
			}
			t.Error("it was offered none of 100")
		})
	}
}

// Namespaces come and go. Those that neither have Jobs nor wait are forgotten, whatever slots they
// have not used.
func TestAnUnusedSlotIsForgottenWithItsFlow(t *testing.T) {
	caches, err := cluster.New(fake.NewClientset(), contract.ProvisionerName, []string{"home"}, nil, cluster.Handlers{})
	if err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakeClock(time.Now())
	s, at := New(caches, clock, func(ClassKey, time.Duration) {}), ClassKey{"home", "x"}
	for i := range 1000 {
		uid := fmt.Sprint("ci-run-", i)
		s.Await(at, Waiter{UID: uid, Limit: 1, Flow: Flow{Namespace: uid, Verb: "provision"}, Since: clock.Now()})
		s.Begin(at)
		s.End(types.UID(uid))
		clock.Step(time.Second)
	}
	if n := len(s.load(at, 100).Served); n > 62 {
		t.Errorf("%d flows are known, of which none has a Job or waits", n)
	}
}

// A UID that waits for what is over in a moment keeps its offer until then, and not for ever.
func TestAnOfferIsKeptForAMoment(t *testing.T) {
	for _, tc := range []struct {
		next time.Duration
		kept int // times
	}{{0, 0}, {soon + time.Second, 0}, {soon, 5}, {time.Second, 10}} {
		s, clock := slotsWith(t)
		s.Await(class, waiting("a", 1))
		uids, kept := s.Begin(class), 0
		s.Await(class, waiting("b", 1))
		for ; kept < 100; kept++ {
			s.Keep("a", clock.Now().Add(tc.next))
			if !s.Awaits("a") {
				break
			}
			if early := s.Begin(class); len(early) != 0 {
				t.Fatalf("%v are offered a slot, and one waits for a moment", early)
			}
			if after := s.Again(class); after != tc.next {
				t.Errorf("it is asked again after %s, want %s", after, tc.next)
			}
			clock.Step(tc.next)
			uids = s.Begin(class)
		}
		if kept != tc.kept || !slices.Equal(uids, []types.UID{"a"}) {
			t.Errorf("with %s to wait, it has kept its offer %d times, want %d; %v have one", tc.next, kept, tc.kept, uids)
		}
		if uids := s.Begin(class); !slices.Equal(uids, []types.UID{"b"}) {
			t.Errorf("%v are offered the next slot, want b", uids)
		}
	}
}

// Its own loop has found out that nothing is in the way any more.
func TestAUIDThatKeepsItsOfferIsAskedWhenItWaits(t *testing.T) {
	s, clock := slotsWith(t)
	s.Await(class, waiting("a", 1))
	s.Begin(class)
	s.Keep("a", clock.Now().Add(time.Second))
	s.Await(class, waiting("a", 1))
	if uids := s.Begin(class); !slices.Equal(uids, []types.UID{"a"}) {
		t.Errorf("%v are offered a slot, want a", uids)
	}
}
