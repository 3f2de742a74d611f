package series

import (
	"k8s.io/component-base/metrics"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// The states of a Job that has not ended. In either it uses one of its class's slots.
const (
	stateRunning = "running"
	stateStuck   = "stuck" // Kubernetes says that it cannot start
)

var (
	queueDesc = metrics.NewDesc("flex_dispatcher_queue",
		"Runs that wait for one of their class's max-parallel slots", []string{labelClass, labelVerb}, nil, metrics.ALPHA, "")
	jobsDesc = metrics.NewDesc("flex_dispatcher_jobs",
		"Jobs that use one of their class's max-parallel slots", []string{labelClass, labelVerb, labelState}, nil, metrics.ALPHA, "")
)

// Backlog is what waits and what runs at a moment, by the class's name.
type Backlog struct {
	Waiting map[Waiting]int
	Jobs    map[Jobs]int
}

// Waiting are the runs of a class and verb that wait for a slot.
type Waiting struct {
	Class string
	Verb  contract.Verb
}

// Jobs are the Jobs of a class and verb that have not ended. Running is set unless they cannot
// start.
type Jobs struct {
	Class         string
	Verb          contract.Verb
	Undo, Running bool
}

// collector counts whenever it is scraped, so that no count must be kept up to date with the
// objects.
type collector struct {
	metrics.BaseStableCollector
	count func() Backlog
}

// DescribeWithStability names the series.
func (c *collector) DescribeWithStability(out chan<- *metrics.Desc) {
	out <- queueDesc
	out <- jobsDesc
}

// CollectWithStability counts.
func (c *collector) CollectWithStability(out chan<- metrics.Metric) {
	backlog := c.count()
	for key, n := range backlog.Waiting {
		out <- metrics.NewLazyConstMetric(queueDesc, metrics.GaugeValue, float64(n), key.Class, string(key.Verb))
	}
	for key, n := range backlog.Jobs {
		state := stateStuck
		if key.Running {
			state = stateRunning
		}
		out <- metrics.NewLazyConstMetric(jobsDesc, metrics.GaugeValue, float64(n), key.Class, verbOf(key.Verb, key.Undo), state)
	}
}
