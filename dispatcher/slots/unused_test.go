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

// UIDs of other namespaces get slots and never use them, as a tenant's do that edits the size of its
// claims: each slot is spent on a write on the claim's status. The claims of another namespace come
// in between, whether or not the namespaces have Jobs.
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
			var next types.UID
			clock := clocktesting.NewFakeClock(time.Now())
			s := New(caches, clock, func(uid types.UID) { next = uid })
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
				if next == "waits" {
					t.Logf("it got a slot after %d of the others", i)
					return
				}
				uid := next
				had := s.Begin(uid)
				clock.Step(10 * time.Millisecond)
				s.End(uid, had, 0) // a write came first
				await(string(uid))
			}
			t.Error("it got no slot in 100 assignments")
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
	s, at := New(caches, clock, func(types.UID) {}), ClassKey{"home", "x"}
	for i := range 1000 {
		uid := fmt.Sprint("ci-run-", i)
		s.Await(at, Waiter{UID: uid, Limit: 1, Flow: Flow{Namespace: uid, Verb: "provision"}, Since: clock.Now()})
		had := s.Begin(types.UID(uid))
		s.End(types.UID(uid), had, 0)
		clock.Step(time.Second)
	}
	if n := len(s.load(at, 100).Served); n > 62 {
		t.Errorf("%d flows are known, of which none has a Job or waits", n)
	}
}

// A UID whose next step is due in a moment keeps its slot until then, and not for ever.
func TestASlotIsHeldForAMoment(t *testing.T) {
	for _, tc := range []struct {
		next time.Duration
		held int // steps
	}{{0, 0}, {soon + time.Second, 0}, {soon, 5}, {time.Second, 10}} {
		s, clock, enqueued := slotsWith(t)
		s.Await(class, waiting("a", 1))
		s.addWaiter(class, waiting("b", 1))
		held := 0
		for len(*enqueued) == 1 && held < 100 {
			had := s.Begin("a")
			if s.End("a", had, tc.next); len(*enqueued) == 1 {
				held++
				clock.Step(tc.next)
			}
		}
		if held != tc.held {
			t.Errorf("with its next step after %s, it has kept the slot for %d of them, want %d", tc.next, held, tc.held)
		}
	}
}
