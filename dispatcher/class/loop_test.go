package class

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/slots"
)

var at = slots.ClassKey{Namespace: "home", Label: "x"}

// declining plays a claim that is not launched, and whose own loop finds at once that it waits.
type declining struct {
	Claims
	slots *slots.Slots
}

func (d declining) Offer(context.Context, types.UID) (*observe.Observation, decide.Action, error) {
	return &observe.Observation{}, decide.AwaitSlot{}, nil
}

func (d declining) Decline(_ context.Context, uid types.UID, _ *observe.Observation, _ decide.Action, _ error) {
	d.slots.Await(at, slots.Waiter{UID: string(uid), Limit: 1})
}

// A claim's own loop may be quicker than that of its class. An offer that ends later would take the
// claim's place in the queue with it.
func TestAClaimThatIsNotLaunchedMayWaitAgainAtOnce(t *testing.T) {
	caches, err := cluster.NewStatic(fake.NewClientset(), []string{"home"})
	if err != nil {
		t.Fatal(err)
	}
	s := slots.New(caches, clocktesting.NewFakeClock(time.Now()), func(slots.ClassKey, time.Duration) {})
	loop := Loop{
		Slots: s, Claims: declining{slots: s}, Workers: 2,
		Recovering: func(_ context.Context, _ string, work func() error) error { return work() },
		Queue:      workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	s.Await(at, slots.Waiter{UID: "a", Limit: 1})
	if _, err := loop.Reconcile(t.Context(), at.String()); err != nil {
		t.Fatal(err)
	}
	if n := s.Waiting()[at][slots.Flow{}]; n != 1 {
		t.Errorf("%d claims wait, want the one", n)
	}
}
