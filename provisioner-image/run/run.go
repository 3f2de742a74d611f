package run

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Runner executes the verbs.
type Runner struct {
	keeper *volume.Keeper
	store  *pv.Store
	log    *slog.Logger
	now    func() time.Time
}

// New returns a Runner that uses a keeper of volumes, a store of PVs and a clock.
func New(keeper *volume.Keeper, store *pv.Store, log *slog.Logger, now func() time.Time) *Runner {
	return &Runner{keeper: keeper, store: store, log: log, now: now}
}

// Report is what a successful run reports. Most verbs report nothing, since the PV says it.
type Report struct {
	// Output is printed to the log.
	Output string
	// Message is the termination message.
	Message string
}

// Run executes one task. The same task can be executed again after any interruption.
func (r *Runner) Run(ctx context.Context, task input.Task) (Report, error) {
	switch task.Verb {
	case contract.Provision:
		return r.provision(ctx, task)
	case contract.Delete:
		return r.delete(ctx, task)
	case contract.Expand:
		return r.expand(ctx, task)
	case contract.List:
		return r.list(ctx, task)
	default:
		return Report{}, &input.Error{
			Code: contract.ExitUsage,
			Err:  fmt.Errorf("this image does not support the verb %q: remove it from the config's verbs", task.Verb),
		}
	}
}
