package controller

import (
	"time"

	"k8s.io/component-base/metrics"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// Labels of our series, and the only values that they can have. None of them can be chosen by a user: a
// label that takes a claim's name or namespace would grow without bounds.
const (
	labelClass   = "class"   // the storage classes for which Jobs ran; empty: one that has gone
	labelSource  = "source"  // empty, or PersistentVolumeClaim: a copy of a claim
	labelVerb    = "verb"    // contract.Verbs, and verbUndo
	labelVerdict = "verdict" // contract's verdicts
	labelPhase   = "phase"   // phaseWait, phaseStart, phaseRun, phaseBind
	labelState   = "state"   // stateRunning, stateStuck
)

// verbUndo is the verb of a delete of what was abandoned: to an administrator it is no deletion of a
// PersistentVolume.
const verbUndo = "undo"

// buckets span from what a quick storage takes to the longest timeouts, in seconds.
var buckets = []float64{0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600}

// attemptBuckets end where a backoff of five minutes has lasted some hours.
var attemptBuckets = []float64{1, 2, 3, 5, 10, 20, 50}

// series are what is counted. Counts are kept by the process, as everywhere; what is counted is read from
// the objects, so that a restart neither forgets a duration nor counts anything twice.
type series struct {
	provisions, provisionsFailed, deletes, deletesFailed, runs *metrics.CounterVec
	provisionSeconds, deleteSeconds, attempts, bound           *metrics.HistogramVec
}

// newSeries: the first six carry the names that dashboards for other provisioners already ask for.
func newSeries() series {
	return series{
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
		attempts: histogramVec("flex_dispatcher_attempts",
			"Counted runs that a success took, itself included", attemptBuckets, labelClass, labelVerb),
		bound: histogramVec("flex_dispatcher_claim_to_bound_seconds",
			"From the creation of a claim until it is bound, by phase", buckets, labelClass, labelPhase),
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

// RegisterMetrics adds the dispatcher's series to a registry. What is never registered is not counted.
func (c *Controller) RegisterMetrics(r Registry) {
	s := c.series
	r.MustRegister(s.provisions, s.provisionsFailed, s.provisionSeconds, s.deletes, s.deletesFailed, s.deleteSeconds,
		s.runs, s.attempts, s.bound)
	r.CustomMustRegister(&backlog{controller: c})
}

// count takes a settled run into the series.
func (s series) count(o *observation, a decide.RecordOutcome, class string) {
	verb := verbOf(a.Run.Verb, a.Run.Volume)
	s.runs.WithLabelValues(class, verb, string(a.Run.Outcome.Verdict)).Inc()
	if a.Success {
		s.attempts.WithLabelValues(class, verb).Observe(float64(max(a.Run.Attempt, 1)))
	}
	took := a.Run.Outcome.Finished.Sub(o.jobs[a.Run.Name].CreationTimestamp.Time)
	switch {
	case verb == string(contract.Provision) && a.Success:
		s.provisions.WithLabelValues(class, source(o)).Inc()
		observeSeconds(s.provisionSeconds.WithLabelValues(class, source(o)), took)
	case verb == string(contract.Provision):
		s.provisionsFailed.WithLabelValues(class, source(o)).Inc()
	case verb == string(contract.Delete) && a.Success:
		s.deletes.WithLabelValues(class).Inc()
		observeSeconds(s.deleteSeconds.WithLabelValues(class), took)
	case verb == string(contract.Delete):
		s.deletesFailed.WithLabelValues(class).Inc()
	}
}

// verbOf is the label of a run's verb; volume is the UID of the PV that a delete is for.
func verbOf(verb contract.Verb, volume string) string {
	if verb == contract.Delete && volume == "" {
		return verbUndo
	}
	return string(verb)
}

// observeSeconds: two clocks may disagree by a moment, and a negative time would spoil a sum.
func observeSeconds(m metrics.ObserverMetric, d time.Duration) { m.Observe(max(d, 0).Seconds()) }

// source is the kind that a claim is copied from, or empty; of a claim that has gone nothing tells it.
func source(o *observation) string {
	if o.claim == nil {
		return ""
	}
	if from, problem := sourceOf(o.claim); problem != nil || from.Name == "" {
		return ""
	}
	return kindClaim
}

// classOf is the class that a run served.
func classOf(o *observation) string {
	switch {
	case o.claim != nil:
		return className(o.claim)
	case o.pv != nil:
		return o.pv.Spec.StorageClassName
	default:
		return o.clean.cfg.Source.Class
	}
}
