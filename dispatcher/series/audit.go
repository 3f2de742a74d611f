package series

import (
	"maps"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
)

var (
	findingsDesc = metrics.NewDesc("flex_dispatcher_audit_findings",
		"Findings of the last audit: orphaned objects and volumes, and objects whose volume or claim is missing", []string{labelKind, labelClass}, nil, metrics.ALPHA, "")
	bytesDesc = metrics.NewDesc("flex_dispatcher_audit_bytes",
		"Total known size of the volumes of these findings", []string{labelKind, labelClass}, nil, metrics.ALPHA, "")
	successDesc = metrics.NewDesc("flex_dispatcher_audit_last_success_timestamp_seconds",
		"Time of the last audit that could read the cluster and list every storage", nil, nil, metrics.ALPHA, "")
)

// Finding are the findings of a kind about a storage class, whose name is empty where it is not known.
type Finding struct{ Kind, Class string }

// Found is how many findings there are, and the size of their volumes.
type Found struct{ Count, Bytes int64 }

// Audit are the gauges of an audit that looks again and again.
type Audit struct {
	metrics.BaseStableCollector

	mu      sync.Mutex
	found   map[Finding]Found
	success time.Time
}

// Set keeps what the audit has found. at is when it has seen everything, zero if it has not.
func (a *Audit) Set(found map[Finding]Found, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.found = maps.Clone(found)
	if !at.IsZero() {
		a.success = at
	}
}

// DescribeWithStability names the series.
func (a *Audit) DescribeWithStability(out chan<- *metrics.Desc) {
	out <- findingsDesc
	out <- bytesDesc
	out <- successDesc
}

// CollectWithStability says what was found last.
func (a *Audit) CollectWithStability(out chan<- metrics.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, n := range a.found {
		out <- metrics.NewLazyConstMetric(findingsDesc, metrics.GaugeValue, float64(n.Count), key.Kind, key.Class)
		out <- metrics.NewLazyConstMetric(bytesDesc, metrics.GaugeValue, float64(n.Bytes), key.Kind, key.Class)
	}
	if !a.success.IsZero() {
		out <- metrics.NewLazyConstMetric(successDesc, metrics.GaugeValue, float64(a.success.Unix()))
	}
}
