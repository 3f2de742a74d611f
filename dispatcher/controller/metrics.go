package controller

import (
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// Labels of our series. class: names of storage classes, empty on volumes whose class has gone. source:
// empty, PersistentVolumeClaim or VolumeSnapshot. verb: contract.Verbs. verdict: contract's verdicts.
const (
	labelClass   = "class"
	labelSource  = "source"
	labelVerb    = "verb"
	labelVerdict = "verdict"
)

// buckets span from what a quick storage takes to the longest timeouts, in seconds.
var buckets = []float64{0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600}

// The first six carry the names that dashboards for other provisioners already ask for.
var (
	provisions = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "controller_persistentvolumeclaim_provision_total",
		Help: "Volumes provisioned",
	}, []string{labelClass, labelSource})
	provisionsFailed = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "controller_persistentvolumeclaim_provision_failed_total",
		Help: "Attempts to provision that failed",
	}, []string{labelClass, labelSource})
	provisionSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name:    "controller_persistentvolumeclaim_provision_duration_seconds",
		Help:    "From the creation of a Job to its successful end",
		Buckets: buckets,
	}, []string{labelClass, labelSource})
	deletes = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "controller_persistentvolume_delete_total",
		Help: "Volumes deleted",
	}, []string{labelClass})
	deletesFailed = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "controller_persistentvolume_delete_failed_total",
		Help: "Attempts to delete that failed",
	}, []string{labelClass})
	deleteSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name:    "controller_persistentvolume_delete_duration_seconds",
		Help:    "From the creation of a Job to its successful end",
		Buckets: buckets,
	}, []string{labelClass})
	runs = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "flex_dispatcher_runs_total",
		Help: "Runs that ended, by verb and verdict",
	}, []string{labelClass, labelVerb, labelVerdict})
)

// RegisterMetrics adds the dispatcher's series to the process's /metrics. Once in a process.
func RegisterMetrics() {
	legacyregistry.MustRegister(provisions, provisionsFailed, provisionSeconds, deletes, deletesFailed, deleteSeconds, runs)
}

// count takes a settled run into the series.
func count(o *observation, a decide.Settle, class string) {
	runs.WithLabelValues(class, string(a.Run.Verb), string(a.Run.Outcome.Verdict)).Inc()
	took := a.Run.Outcome.Finished.Sub(o.jobs[a.Run.Name].CreationTimestamp.Time)
	switch {
	case a.Run.Verb == contract.Provision && a.Success:
		provisions.WithLabelValues(class, source(o)).Inc()
		observeSeconds(provisionSeconds.WithLabelValues(class, source(o)), took)
	case a.Run.Verb == contract.Provision:
		provisionsFailed.WithLabelValues(class, source(o)).Inc()
	case a.Run.Verb == contract.Delete && a.Success:
		deletes.WithLabelValues(class).Inc()
		observeSeconds(deleteSeconds.WithLabelValues(class), took)
	case a.Run.Verb == contract.Delete:
		deletesFailed.WithLabelValues(class).Inc()
	}
}

// observeSeconds: two clocks may disagree by a moment, and a negative time would spoil a sum.
func observeSeconds(m metrics.ObserverMetric, d time.Duration) { m.Observe(max(d, 0).Seconds()) }

// source is the kind that a claim is copied from, or empty.
func source(o *observation) string {
	if o.claim == nil || o.claim.Spec.DataSourceRef == nil {
		return ""
	}
	return o.claim.Spec.DataSourceRef.Kind
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
