package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
	"github.com/flex-provisioner/flex-provisioner/test/bench/report"
)

// realNode serves the claims that come one after the other.
const realNode = "node1"

// measureOnes measures claims that come one after the other, on a node with a kubelet.
func measureOnes(ctx context.Context, s settings) (report.Result, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	result := report.Result{Column: s.cell.Column, Row: s.cell.Row.Name, Claims: s.cell.Claims}
	c, err := connect(s.kubeconfig, s.temp)
	if err != nil {
		return result, err
	}
	if err := c.prepare(ctx); err != nil && !apierrors.IsAlreadyExists(err) {
		return result, err
	}
	b := &bench{settings: s, cluster: c}
	if b.subject, err = newSingle(ctx, s, c); err != nil {
		return result, err
	}
	defer b.subject.end(stop)
	if b.watcher, err = startWatcher(ctx, c.client); err != nil {
		return result, err
	}
	if b.tracer, err = startTracer(ctx, c.client); err != nil {
		return result, err
	}
	result.Provision = &report.Phase{}
	if s.cell.Row.Deletes() {
		result.Delete = &report.Phase{}
	}
	for i, name := range append(names(s.cell.Row.Name+"-first", 1), names(s.cell.Row.Name, s.cell.Claims)...) {
		if err := b.oneClaim(ctx, name, &result, i > 0); err != nil {
			return result, err
		}
	}
	return result, nil
}

// oneClaim measures one claim, from its creation until nothing of it is left.
func (b *bench) oneClaim(ctx context.Context, name string, result *report.Result, counts bool) error {
	trace := b.tracer.begin(false)
	provision, err := b.burst(ctx, b.watcher.provisioned, b.subject.create, []string{name})
	if err != nil {
		return fmt.Errorf("provision %s: %w", name, err)
	}
	trace.Note(report.Bound, time.Now()) // the watcher may see it first
	provision.Steps = trace.Steps()
	if !b.cell.Row.AtOnce {
		if err := idle(ctx, provisionEnds); err != nil {
			return err
		}
	}
	if counts {
		result.Provision.Add(provision)
	}
	if b.cell.Row.Deletes() {
		if err := b.oneDeletion(ctx, name, result, counts); err != nil {
			return err
		}
	}
	return idle(ctx, time.Second) // the next claim begins when all is idle
}

// oneDeletion measures the deletion of one claim.
func (b *bench) oneDeletion(ctx context.Context, name string, result *report.Result, counts bool) error {
	trace := b.tracer.begin(true)
	remove, err := b.burst(ctx, b.watcher.deleted, b.subject.remove, []string{name})
	if err != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	trace.Note(report.PVGone, time.Now())
	remove.Steps = trace.Steps()
	if counts {
		result.Delete.Add(remove)
	}
	return nil
}

// provisionEnds is how long after a claim is bound the pod that has provisioned it has ended, too.
const provisionEnds = 4 * time.Second

// idle waits, unless the context ends.
func idle(ctx context.Context, wait time.Duration) error {
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newSingle starts what a row measures. Our dispatcher runs in the cluster, as it was deployed.
func newSingle(ctx context.Context, s settings, c *cluster) (*subject, error) {
	switch s.cell.Row.Kind {
	case plan.LocalPath:
		return startLocalPathOn(ctx, s, c, realNode)
	case plan.Floor:
		return startFloor(ctx, s, c)
	case plan.Jobs:
		return startJobs(ctx, s, c)
	default:
		create := c.claims(s.cell.Row.Class, map[string]string{annSelectedNode: realNode})
		return &subject{create: create, remove: c.deleteClaim}, nil
	}
}
