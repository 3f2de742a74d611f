package series

import (
	"time"

	"k8s.io/component-base/metrics"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/version"
)

// Labels of the series, and the only values that they can have. A user can choose none of them: a
// label with a claim's name or namespace would grow without bounds.
const (
	labelClass   = "class"   // the storage classes for which Jobs ran, empty for one that no object names any more
	labelSource  = "source"  // empty, or PersistentVolumeClaim for a clone
	labelVerb    = "verb"    // contract.Verbs, and verbUndo
	labelVerdict = "verdict" // contract's verdicts
	labelPhase   = "phase"   // of a claim
	labelType    = "type"    // Normal, Warning: of an event
	labelState   = "state"   // stateRunning, stateStuck
	labelReason  = "reason"  // why a claim is pending: contract's verdicts, reasons of events about configs, and reasonRunning and its like
	labelVersion = "version" // of the build
)

// verbUndo is the verb of a delete that undoes an abandoned provision. To an administrator that is
// not the deletion of a PersistentVolume.
const verbUndo = "undo"

// buckets range from the time that a quick storage takes to the longest timeouts, in seconds.
var buckets = []float64{0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600}

// attemptBuckets end with the attempts of some hours at a backoff of five minutes.
var attemptBuckets = []float64{1, 2, 3, 5, 10, 20, 50}

// Series are the dispatcher's counters and histograms. The process keeps the counts, as usual.
// Durations and attempts are read from the objects, so that a restart neither loses a duration nor
// counts anything twice.
type Series struct {
	provisions, provisionsFailed, deletes, deletesFailed, runs, spares, droppedEvents *metrics.CounterVec
	provisionSeconds, deleteSeconds, attempts, bound                                  *metrics.HistogramVec
	panics                                                                            *metrics.Counter
}

// New returns the series. None is registered. The first six have the names that dashboards for
// other provisioners use.
func New() Series {
	return Series{
		provisions: counterVec("controller_persistentvolumeclaim_provision_total",
			"Volumes provisioned", labelClass, labelSource),
		provisionsFailed: counterVec("controller_persistentvolumeclaim_provision_failed_total",
			"Attempts to provision that failed", labelClass, labelSource),
		provisionSeconds: histogramVec("controller_persistentvolumeclaim_provision_duration_seconds",
			"From the creation of a Job to its successful end", buckets, labelClass, labelSource),
		deletes: counterVec("controller_persistentvolume_delete_total",
			"Volumes deleted", labelClass),
		deletesFailed: counterVec("controller_persistentvolume_delete_failed_total",
			"Attempts to delete that failed", labelClass),
		deleteSeconds: histogramVec("controller_persistentvolume_delete_duration_seconds",
			"From the creation of a Job to its successful end", buckets, labelClass),
		runs: counterVec("flex_dispatcher_runs_total",
			"Runs that ended, by verb and verdict", labelClass, labelVerb, labelVerdict),
		spares: counterVec("flex_dispatcher_spare_volumes_total",
			"Volumes that were provisioned for a claim while Kubernetes bound it to another PersistentVolume", labelClass),
		droppedEvents: counterVec("flex_dispatcher_events_dropped_total",
			"Events that were dropped because too many were waiting", labelType),
		attempts: histogramVec("flex_dispatcher_attempts",
			"Number of counted runs until a success, including it", attemptBuckets, labelClass, labelVerb),
		bound: histogramVec("flex_dispatcher_claim_to_bound_seconds",
			"From the creation of a claim until it is bound, by phase", buckets, labelClass, labelPhase),
		panics: metrics.NewCounter(&metrics.CounterOpts{
			Name: "flex_dispatcher_panics_total", Help: "Panics that the dispatcher recovered from. Each is a bug",
		}),
	}
}

func counterVec(name, help string, labels ...string) *metrics.CounterVec {
	return metrics.NewCounterVec(&metrics.CounterOpts{Name: name, Help: help}, labels)
}

func histogramVec(name, help string, buckets []float64, labels ...string) *metrics.HistogramVec {
	return metrics.NewHistogramVec(&metrics.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// Registry takes the dispatcher's series.
type Registry interface {
	MustRegister(...metrics.Registerable)
	CustomMustRegister(...metrics.StableCollector)
}

// Register adds the series and the gauges of the backlog to a registry. A series that is never
// registered is not counted.
func (s Series) Register(r Registry, backlog func() Backlog) {
	r.MustRegister(s.provisions, s.provisionsFailed, s.provisionSeconds, s.deletes, s.deletesFailed, s.deleteSeconds,
		s.runs, s.spares, s.droppedEvents, s.attempts, s.bound, s.panics)
	build := metrics.NewGaugeVec(&metrics.GaugeOpts{Name: "flex_dispatcher_build_info", Help: "1, by the version of the build"}, []string{labelVersion})
	r.MustRegister(build)
	build.WithLabelValues(version.Get().Version).Set(1)
	r.CustomMustRegister(&collector{count: backlog})
}

// Run is what is counted of a run that has ended.
type Run struct {
	Class, Source string
	Verb          contract.Verb
	Undo          bool
	Verdict       contract.Verdict
	Success       bool
	// Spare is set if the claim was bound to another PV while its volume was made.
	Spare   bool
	Attempt int
	Took    time.Duration // from the creation of its Job
}

// CountRun counts a run whose outcome has been recorded.
func (s Series) CountRun(r Run) {
	verb := verbOf(r.Verb, r.Undo)
	s.runs.WithLabelValues(r.Class, verb, string(r.Verdict)).Inc()
	if r.Spare {
		s.spares.WithLabelValues(r.Class).Inc()
	}
	if r.Success {
		s.attempts.WithLabelValues(r.Class, verb).Observe(float64(max(r.Attempt, 1)))
	}
	switch {
	case verb == string(contract.Provision) && r.Success:
		s.provisions.WithLabelValues(r.Class, r.Source).Inc()
		observeSeconds(s.provisionSeconds.WithLabelValues(r.Class, r.Source), r.Took)
	case verb == string(contract.Provision):
		s.provisionsFailed.WithLabelValues(r.Class, r.Source).Inc()
	case verb == string(contract.Delete) && r.Success:
		s.deletes.WithLabelValues(r.Class).Inc()
		observeSeconds(s.deleteSeconds.WithLabelValues(r.Class), r.Took)
	case verb == string(contract.Delete):
		s.deletesFailed.WithLabelValues(r.Class).Inc()
	}
}

// CountDroppedEvent counts an event of a type that was not written.
func (s Series) CountDroppedEvent(eventType string) { s.droppedEvents.WithLabelValues(eventType).Inc() }

// CountPanic counts a panic that was recovered from.
func (s Series) CountPanic() { s.panics.Inc() }

// The phases of a claim until it is bound. One ends when the next begins.
const (
	PhaseWait  = "wait"  // from the claim's creation to that of the Job that provisioned it: node selection, earlier attempts, its slot
	PhaseStart = "start" // until the container runs: the scheduler, the image pull
	PhaseRun   = "run"   // until the PV exists
	PhaseBind  = "bind"  // until the claim is bound
)

// ObservePhase counts the length of one phase of a claim.
func (s Series) ObservePhase(class, phase string, took time.Duration) {
	observeSeconds(s.bound.WithLabelValues(class, phase), took)
}

// verbOf returns the label value of a run's verb.
func verbOf(verb contract.Verb, undo bool) string {
	if undo {
		return verbUndo
	}
	return string(verb)
}

// observeSeconds counts a negative duration as zero. Two clocks may differ by a moment, which would
// spoil a sum.
func observeSeconds(m metrics.ObserverMetric, d time.Duration) { m.Observe(max(d, 0).Seconds()) }
