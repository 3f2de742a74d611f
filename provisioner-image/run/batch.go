package run

import (
	"context"
	"errors"
	"sync"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
)

// Ended is a task and how it ended.
type Ended struct {
	Task   input.Task
	Report Report
	Err    error
}

// End returns how tasks end that cannot be begun: each with its own fault, or else with the error
// of the run.
func End(tasks []input.Task, err error) []Ended {
	all := make([]Ended, len(tasks))
	for i, task := range tasks {
		all[i] = Ended{Task: task, Err: task.Fault}
		if task.Fault == nil {
			all[i].Err = err
		}
	}
	return all
}

// RunAll executes the tasks of a run, a few at a time. How a task ends does not depend on the
// others. If all of a batch were begun at once, the storage would be asked again and again how far
// it is with each, and the first PV would be written when the last volume is made.
func (r *Runner) RunAll(ctx context.Context, tasks []input.Task) []Ended {
	r, err := r.ahead(ctx, tasks)
	if err != nil {
		return End(tasks, err)
	}
	all := End(tasks, nil)
	var running sync.WaitGroup
	slots := make(chan struct{}, max(1, tasks[0].Parallel))
	for i := range all {
		if one := &all[i]; one.Err == nil {
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				one.Task.Volume.Asked = r.now() // not the beginning of the run: a volume that is made late in a long batch would be taken for a copy
				one.Report, one.Err = r.logging(one.Task).Run(ctx, one.Task)
			})
		}
	}
	running.Wait()
	return all
}

// ahead returns a Runner that has listed the volumes of a batch's claims. The verbs that list none
// need not.
func (r *Runner) ahead(ctx context.Context, tasks []input.Task) (*Runner, error) {
	if len(tasks) < 2 || tasks[0].Verb != contract.Provision && tasks[0].Verb != contract.Delete {
		return r, nil
	}
	keeper, err := r.keeper.Ahead(ctx, tasks[0].Request.ClusterUID, tasks[0].Verb == contract.Provision)
	if err != nil {
		return nil, err
	}
	return New(keeper, r.store, r.log, r.now), nil
}

// logging returns a Runner whose log says which task of a batch a line is about.
func (r *Runner) logging(task input.Task) *Runner {
	if !task.Shared {
		return r
	}
	return New(r.keeper, r.store, r.log.With("request", task.Request.UID), r.now)
}

// isForAlone reports whether a task of a batch ended so that a run of its own may end otherwise. It
// has no result then, by which it is tried again alone, and this run is not counted as an attempt.
// Kubernetes may forbid a batch what it allows the pod of one claim. A run that was stopped says
// nothing of its tasks.
func isForAlone(task input.Task, err error) bool {
	return task.Shared && (isRefusedByKubernetes(err) || errors.Is(err, context.Canceled))
}
