package class

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
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

// failing plays a claim that cannot even be reported.
type failing struct{ Claims }

func (failing) Offer(context.Context, types.UID) (*observe.Observation, decide.Action, error) {
	panic("it cannot be observed")
}

func (failing) Failed(context.Context, types.UID, *observe.Observation, error) {
	panic("it cannot be reported")
}

func (d declining) Decline(_ context.Context, uid types.UID, _ *observe.Observation, _ decide.Action, _ error) {
	d.slots.Await(at, slots.Waiter{UID: string(uid), Limit: 1})
}

// A claim's own loop may be quicker than that of its class. An offer that ends later would take the
// claim's place in the queue with it.
func TestAClaimThatIsNotLaunchedMayWaitAgainAtOnce(t *testing.T) {
	s := slotsOf(t)
	serveOne(t, s, declining{slots: s})
	if n := s.Waiting()[at][slots.Flow{}]; n != 1 {
		t.Errorf("%d claims wait, want the one", n)
	}
}

// A panic in a goroutine of the loop would end the process, and the next leader as well.
func TestAPanicWhileAFailureIsReportedEndsNoLoop(t *testing.T) {
	s := slotsOf(t)
	serveOne(t, s, failing{})
	if s.Awaits("a") {
		t.Error("it has its offer still")
	}
}

func slotsOf(t *testing.T) *slots.Slots {
	t.Helper()
	caches, err := cluster.NewStatic(fake.NewClientset(), []string{"home"})
	if err != nil {
		t.Fatal(err)
	}
	return slots.New(caches, clocktesting.NewFakeClock(time.Now()), func(slots.ClassKey, time.Duration) {})
}

// serveOne has the one claim that waits served.
func serveOne(t *testing.T, s *slots.Slots, claims Claims) {
	t.Helper()
	loop := Loop{Slots: s, Claims: claims, Workers: 2, Recovering: recovering}
	s.Await(at, slots.Waiter{UID: "a", Limit: 1})
	if _, err := loop.Reconcile(t.Context(), at.String()); err != nil {
		t.Fatal(err)
	}
}

func recovering(_ context.Context, _ string, work func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	return work()
}
