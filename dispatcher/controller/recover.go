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

// recovering does the work for one item of a queue and turns a panic into an error, which is counted and retried like
// any other. Otherwise one object that the code cannot handle would end every leader, and no claim would be served.
func (c *Controller) recovering(ctx context.Context, item string, work func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			c.series.CountPanic()
			err = fmt.Errorf("%w: %v", errPanic, cause)
			klog.FromContext(ctx).Error(err, "Recovered from a panic", "item", item, "stack", string(debug.Stack()))
		}
	}()
	return work()
}
