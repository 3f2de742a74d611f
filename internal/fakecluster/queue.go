package fakecluster

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
)

// NewQueue returns a queue for a process of a cluster that is stepped through. A move gives its
// next item, and the cluster picks which.
func NewQueue[T cmp.Ordered](p *Process, name string) workqueue.TypedDelayingInterface[T] {
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[T]{Clock: p.Clock, Queue: &picked[T]{pick: p.pick}})
	return &steppedQueue[T]{
		TypedDelayingInterface: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{Clock: p.Clock, Queue: queue}),
		name:                   name, waits: &p.waits, ended: make(chan struct{}),
	}
}

type steppedQueue[T cmp.Ordered] struct {
	workqueue.TypedDelayingInterface[T]
	name  string
	waits *waits
	ended chan struct{}
}

// Get waits until a move gives an item, or the queue is shut down.
func (q *steppedQueue[T]) Get() (item T, shutdown bool) {
	select {
	case <-q.waits.begin(q.name, q.Len):
		return q.TypedDelayingInterface.Get()
	case <-q.ended:
		return item, true
	}
}

// ShutDown ends the queue, with what is left in it.
func (q *steppedQueue[T]) ShutDown() {
	close(q.ended)
	q.TypedDelayingInterface.ShutDown()
}

// picked holds the items of a queue in their own order, whichever came first: items due at the same
// time are returned in arbitrary order.
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

// waits are the queues of which the next item is awaited, by name.
type waits struct {
	mu     sync.Mutex
	queues map[string]wait
}

type wait struct {
	waiting func() int
	over    chan struct{}
}

func (w *waits) begin(queue string, waiting func() int) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queues == nil {
		w.queues = map[string]wait{}
	}
	w.queues[queue] = wait{waiting, make(chan struct{})}
	return w.queues[queue].over
}

// ready returns the queues that have an item.
func (w *waits) ready() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.queues)), func(queue string) bool { return w.queues[queue].waiting() == 0 })
}

func (w *waits) end(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.queues[queue].over)
	delete(w.queues, queue)
}
