package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// errPanic is the error of an item whose work has panicked.
var errPanic = errors.New("panic")

// recovering does the work for one item of a queue and turns a panic into an error, which is
// counted and retried like any other. Otherwise one object that the code cannot handle would end
// every leader, and no claim would be served.
func (c *Controller) recovering(ctx context.Context, item string, work func() error) (err error) {
	return c.recoveringWith(klog.FromContext(ctx), item, work)
}

func (c *Controller) recoveringWith(log klog.Logger, item string, work func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			c.series.CountPanic()
			err = fmt.Errorf("%w: %v", errPanic, cause)
			log.Error(err, "Recovered from a panic", "item", item, "stack", string(debug.Stack()))
		}
	}()
	return work()
}

// guarded returns a handler of watch events that recovers from a panic, which is counted. Otherwise
// client-go would end the process, and the next leader would handle the same object.
func guarded[T any](c *Controller, handle func(T)) func(T) {
	return func(obj T) { c.handle(func() { handle(obj) }) }
}

// guardedUpdate does the same with a handler of the old and the new state.
func guardedUpdate[T any](c *Controller, handle func(old, now T)) func(old, now T) {
	return func(old, now T) { c.handle(func() { handle(old, now) }) }
}

func (c *Controller) handle(event func()) {
	_ = c.recoveringWith(c.log, "a watch event", func() error { // the panic is logged and counted
		event()
		return nil
	})
}
