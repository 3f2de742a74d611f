package controller

import (
	batchv1 "k8s.io/api/batch/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-base/metrics"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// The states of a Job that has not ended.
const (
	stateRunning = "running" // it holds one of its class's slots
	stateStuck   = "stuck"   // it cannot start, and holds none
)

var (
	queueDesc = metrics.NewDesc("flex_dispatcher_queue",
		"Runs that wait for one of their class's max-parallel slots", []string{labelClass, labelVerb}, nil, metrics.ALPHA, "")
	jobsDesc = metrics.NewDesc("flex_dispatcher_jobs",
		"Jobs that have not ended", []string{labelClass, labelVerb, labelState}, nil, metrics.ALPHA, "")
)

// backlog counts what waits and what runs whenever it is asked, so that nothing must be kept in step with
// the objects.
type backlog struct {
	metrics.BaseStableCollector
	controller *Controller
}

// DescribeWithStability names the series.
func (b *backlog) DescribeWithStability(out chan<- *metrics.Desc) {
	out <- queueDesc
	out <- jobsDesc
}

// CollectWithStability counts.
func (b *backlog) CollectWithStability(out chan<- metrics.Metric) {
	c := b.controller
	names := c.classNames()
	for key, n := range c.turns.waiting(names) {
		out <- metrics.NewLazyConstMetric(queueDesc, metrics.GaugeValue, float64(n), key.class, key.verb)
	}
	for key, n := range c.unfinished(names) {
		out <- metrics.NewLazyConstMetric(jobsDesc, metrics.GaugeValue, float64(n), key.class, key.verb, key.state)
	}
}

// gauge is one line of the backlog; state is empty in the queue.
type gauge struct{ class, verb, state string }

// classNames are the names of the classes by the label that Jobs carry of them.
func (c *Controller) classNames() map[string]string {
	names := map[string]string{}
	for _, obj := range c.caches.classes.List() {
		name := obj.(*storagev1.StorageClass).Name
		names[config.ClassLabel(name)] = name
	}
	return names
}

func (t *turns) waiting(names map[string]string) map[gauge]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[gauge]int{}
	for at, line := range t.lines {
		for lane, n := range line.Lanes() {
			out[gauge{class: names[at.class], verb: string(lane.Verb)}] += n
		}
	}
	return out
}

// unfinished counts the Jobs that have not ended. In a quiet class both states are absent, as Kubernetes' own
// gauges by label are.
func (c *Controller) unfinished(names map[string]string) map[gauge]int {
	out := map[gauge]int{}
	for _, s := range c.caches.spaces {
		for _, label := range s.jobs.ListIndexFuncValues(byUnfinished) {
			found, _ := s.jobs.ByIndex(byUnfinished, label)
			for _, obj := range found {
				job := obj.(*batchv1.Job)
				verb := verbOf(contract.Verb(job.Labels[jobs.LabelVerb]), job.Annotations[jobs.Key(job, job.Labels[contract.LabelClaimUID], jobs.AnnVolume)])
				state := stateStuck
				if c.progresses(job) {
					state = stateRunning
				}
				out[gauge{names[label], verb, state}]++
			}
		}
	}
	return out
}
