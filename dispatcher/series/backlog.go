package series

import (
	"time"

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
	pendingDesc = metrics.NewDesc("flex_dispatcher_claims_pending",
		"Claims that wait for a volume of the dispatcher, by why", []string{labelClass, labelReason}, nil, metrics.ALPHA, "")
	oldestDesc = metrics.NewDesc("flex_dispatcher_oldest_pending_claim_timestamp_seconds",
		"Creation of the oldest claim that waits for a volume of the dispatcher, by why", []string{labelClass, labelReason}, nil, metrics.ALPHA, "")
	recordsDesc = metrics.NewDesc("flex_dispatcher_records_held",
		"Jobs that have ended and are kept as the record of what may be in the storage", []string{labelClass}, nil, metrics.ALPHA, "")
	trashDesc = metrics.NewDesc("flex_dispatcher_trash_volumes",
		"Volumes of deleted claims that wait for their delete, as keep-deleted says", []string{labelClass}, nil, metrics.ALPHA, "")
	trashBytesDesc = metrics.NewDesc("flex_dispatcher_trash_bytes",
		"Bytes of these volumes", []string{labelClass}, nil, metrics.ALPHA, "")
)

// Why a claim is pending if no verdict of a run and no reason of an event about its config says it.
const (
	reasonRunning = "Running" // a Job for it is at work
	reasonStuck   = "Stuck"   // its Job cannot start
	reasonWaiting = "Waiting" // nothing of the kind: it waits for a slot, a node, or as an event about it says
)

// Backlog is what waits and what runs at a moment, by the class's name.
type Backlog struct {
	Waiting map[Waiting]int
	Jobs    map[Jobs]int
	Pending map[Pending]int
	// Oldest is the creation of the oldest of these claims, Held counts the Jobs that have ended and are
	// kept as records.
	Oldest map[Pending]time.Time
	Held   map[string]int
	// Trash are the volumes of deleted claims that wait for their delete.
	Trash map[string]Trash
}

// Trash is how many volumes of a class wait for their delete, and how large they are together.
type Trash struct{ Volumes, Bytes int64 }

// Pending are the claims of a class that wait for the same.
type Pending struct{ Class, Reason string }

// Why is what a claim waits for.
type Why struct {
	// Running is set if a Job for the claim has not ended, Stuck if that cannot start.
	Running, Stuck bool
	// Problem is the reason of the event that the config does not serve the claim, empty for none. Verdict is
	// that of the newest run for the claim, empty without one that has ended.
	Problem string
	Verdict contract.Verdict
}

// reason returns the value of the label: the first that an administrator can do something about.
func (w Why) reason() string {
	switch {
	case w.Stuck:
		return reasonStuck
	case w.Running:
		return reasonRunning
	case w.Problem != "":
		return w.Problem
	case w.Verdict != "":
		return string(w.Verdict)
	default:
		return reasonWaiting
	}
}

// AddPending counts a pending claim of a class.
func (b *Backlog) AddPending(class string, created time.Time, why Why) {
	of := Pending{class, why.reason()}
	b.Pending[of]++
	if oldest, known := b.Oldest[of]; !known || created.Before(oldest) {
		b.Oldest[of] = created
	}
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
	out <- pendingDesc
	out <- oldestDesc
	out <- recordsDesc
	out <- trashDesc
	out <- trashBytesDesc
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
	for key, n := range backlog.Pending {
		out <- metrics.NewLazyConstMetric(pendingDesc, metrics.GaugeValue, float64(n), key.Class, key.Reason)
	}
	for key, created := range backlog.Oldest {
		out <- metrics.NewLazyConstMetric(oldestDesc, metrics.GaugeValue, float64(created.Unix()), key.Class, key.Reason)
	}
	for class, n := range backlog.Held {
		out <- metrics.NewLazyConstMetric(recordsDesc, metrics.GaugeValue, float64(n), class)
	}
	for class, trash := range backlog.Trash {
		out <- metrics.NewLazyConstMetric(trashDesc, metrics.GaugeValue, float64(trash.Volumes), class)
		out <- metrics.NewLazyConstMetric(trashBytesDesc, metrics.GaugeValue, float64(trash.Bytes), class)
	}
}
