package run

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/flex-provisioner/flex-provisioner/audit"
)

// Labels of the series.
const (
	labelKind  = "kind"  // what is wrong
	labelClass = "class" // the storage class, empty where it is not known

	// The volume and, if one is bound to it, its claim. A scrape of Prometheus has a label namespace of
	// its own, the audit's.
	labelPV        = "persistentvolume"
	labelNamespace = "claim_namespace"
	labelClaim     = "claim"
)

// mostUsed is how many volumes have a series of their own: the fullest.
const mostUsed = 1000

var (
	findingsDesc = metrics.NewDesc("flex_dispatcher_audit_findings",
		"Findings of the last audit: orphaned objects and volumes, and objects whose counterpart is missing", []string{labelKind, labelClass}, nil, metrics.ALPHA, "")
	bytesDesc = metrics.NewDesc("flex_dispatcher_audit_bytes",
		"The size of the volumes of these findings, as far as it is known", []string{labelKind, labelClass}, nil, metrics.ALPHA, "")
	usedDesc = metrics.NewDesc("flex_volume_used_bytes",
		"How many bytes of its storage a volume uses, by the last audit, if the storage says so: the 1000 volumes with the largest share of their capacity",
		[]string{labelClass, labelPV, labelNamespace, labelClaim}, nil, metrics.ALPHA, "")
	successDesc = metrics.NewDesc("flex_dispatcher_audit_last_success_timestamp_seconds",
		"When the audit last saw the cluster and every storage that it was to list", nil, nil, metrics.ALPHA, "")
)

// Gauges are the series of an audit that looks again and again.
type Gauges struct {
	metrics.BaseStableCollector

	mu      sync.Mutex
	found   map[gauge]found
	used    []audit.Usage
	success time.Time
}

// gauge says of which findings a gauge is: of a kind, about a storage class, whose name is empty
// where it is not known. Of a volume that is the class whose storage has listed it: the list names
// any class, and a hostile one as many as it has lines.
type gauge struct{ kind, class string }

// found is how many findings there are, and the size of their volumes.
type found struct{ count, bytes int64 }

// set shows what an audit has found. The findings of a storage that could not be listed are
// missing, and then the audit has not seen everything.
func (g *Gauges) set(l Look, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.found = map[gauge]found{}
	for _, f := range l.Found {
		key := gauge{string(f.Kind), cmp.Or(f.ListedBy, f.Class)}
		if !slices.Contains(l.State.Classes, key.class) { // a PV names any class, as its container chose
			key.class = ""
		}
		g.found[key] = found{g.found[key].count + 1, g.found[key].bytes + f.Size}
	}
	g.used = audit.Usages(l.State)
	g.used = g.used[:min(len(g.used), mostUsed)]
	if len(l.Faults) == 0 {
		g.success = now
	}
}

// DescribeWithStability names the series.
func (g *Gauges) DescribeWithStability(out chan<- *metrics.Desc) {
	out <- findingsDesc
	out <- bytesDesc
	out <- usedDesc
	out <- successDesc
}

// CollectWithStability says what was found last.
func (g *Gauges) CollectWithStability(out chan<- metrics.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, n := range g.found {
		out <- metrics.NewLazyConstMetric(findingsDesc, metrics.GaugeValue, float64(n.count), key.kind, key.class)
		out <- metrics.NewLazyConstMetric(bytesDesc, metrics.GaugeValue, float64(n.bytes), key.kind, key.class)
	}
	for _, u := range g.used {
		out <- metrics.NewLazyConstMetric(usedDesc, metrics.GaugeValue, float64(u.Used), u.Class, u.PV, u.Namespace, u.Claim)
	}
	if !g.success.IsZero() {
		out <- metrics.NewLazyConstMetric(successDesc, metrics.GaugeValue, float64(g.success.Unix()))
	}
}
