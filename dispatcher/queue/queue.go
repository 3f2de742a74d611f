package queue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// longest is the longest pause before an item that failed comes again.
const longest = time.Minute

// Steps decides how queues move on.
type Steps interface {
	// Await returns when the next item of a queue may be taken, or ctx has ended. waiting returns how many there are.
	Await(ctx context.Context, queue string, waiting func() int)
	// Pick returns which of n items of a queue is taken, from 0.
	Pick(n int) int
}

// Queue holds items that are to be reconciled, each once.
type Queue[T cmp.Ordered] struct {
	workqueue.TypedRateLimitingInterface[T]
	name  string
	steps Steps
}

// New returns a queue. An item that has failed comes again after a pause of first, which doubles each time up to a minute. steps is nil where
// nothing is simulated: then items come as soon as they can, and the oldest first.
func New[T cmp.Ordered](name string, first time.Duration, clk clock.WithTicker, steps Steps) Queue[T] {
	cfg := workqueue.TypedQueueConfig[T]{Name: name, Clock: clk}
	if steps != nil {
		cfg.Queue = &picked[T]{pick: steps.Pick}
	}
	return Queue[T]{name: name, steps: steps, TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[T](first, longest),
		workqueue.TypedRateLimitingQueueConfig[T]{Name: name, Clock: clk, DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(
			workqueue.TypedDelayingQueueConfig[T]{Name: name, Clock: clk, Queue: workqueue.NewTypedWithConfig(cfg)})})}
}

// Take waits for an item. It reports whether the queue was shut down instead.
func (q Queue[T]) Take(ctx context.Context) (item T, shutdown bool) {
	if q.steps != nil {
		if q.steps.Await(ctx, q.name, q.Len); ctx.Err() != nil { // the queue may not be shut down yet
			return item, true
		}
	}
	return q.Get()
}

// picked holds the items of a queue in their own order, whichever came first: two that become due at one instant come in any order.
type picked[T cmp.Ordered] struct {
	items []T
	pick  func(n int) int
}

// Touch does nothing: no item becomes more urgent.
func (p *picked[T]) Touch(T) {}

// Push adds an item.
func (p *picked[T]) Push(item T) {
	i, _ := slices.BinarySearch(p.items, item)
	p.items = slices.Insert(p.items, i, item)
}

// Len returns how many items there are.
func (p *picked[T]) Len() int { return len(p.items) }

// Pop removes an item and returns it. There must be one.
func (p *picked[T]) Pop() T {
	i := p.pick(len(p.items))
	item := p.items[i]
	p.items = slices.Delete(p.items, i, i+1)
	return item
}
