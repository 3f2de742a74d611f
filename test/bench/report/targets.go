package report

import (
	"slices"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/test/bench/audit"
	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
)

// OurActor is the user of our dispatcher in the audit log.
const OurActor = "flex-dispatcher"

// metric is what is measured of a cell.
type metric struct {
	// name is what follows the row's, a rate's is its phase's verb.
	name string
	// of returns it from a phase. A metric without is one of the figures of a cell without phases.
	of func(*Phase) float64
	// each is set for what is measured for each claim, zero where 0 is a measurement.
	each, zero bool
}

// The metrics of bursts.
var (
	rate      = metric{of: (*Phase).Rate}
	p50       = metric{name: "p50 s", of: func(p *Phase) float64 { return p.Quantile(0.5) }}
	allCPU    = metric{name: "CPU ms", each: true, of: (*Phase).allCPU}
	ownCPU    = metric{name: "its own CPU ms", each: true, of: func(p *Phase) float64 { return p.CPU(Provisioner) }}
	requested = metric{name: "requests", each: true, of: (*Phase).allRequests}
	writes    = sent("writes", only(audit.Count.IsWrite))
	reads     = sent("reads", only(audit.Count.IsRead))
	events    = sent("events", only(audit.Count.IsEvent))
	refused   = sent("conflicts", func(c audit.Count) int { return c.Conflicts })
)

// The metrics of clusters with many objects, which test/memory measures.
var (
	heapEach = metric{name: HeapEach}
	rss      = metric{name: RSS}
	peak     = metric{name: Peak}
	ready    = metric{name: Ready}
	firstJob = metric{name: FirstJob}
	death    = metric{name: AfterDeath}
	stop     = metric{name: AfterStop}
)

// Names of figures.
const (
	HeapEach   = "heap bytes a claim"
	RSS        = "RSS MiB"
	Peak       = "peak MiB"
	Ready      = "ready s"
	FirstJob   = "first Job s"
	AfterDeath = "next Job s after the leader's death"
	AfterStop  = "next Job s after a clean stop"
)

// sent counts requests of our dispatcher for each claim.
func sent(name string, count func(audit.Count) int) metric {
	return metric{name: name, each: true, zero: true, of: func(p *Phase) float64 { return p.perClaim(OurActor, count) }}
}

func only(is func(audit.Count) bool) func(audit.Count) int {
	return func(c audit.Count) int {
		if is(c) {
			return c.N
		}
		return 0
	}
}

// part is what a row did: it bound claims or deleted them.
type part struct {
	row      string
	deletion bool
}

func bound(row string) part   { return part{row: row} }
func deleted(row string) part { return part{row: row, deletion: true} }

// limit is so many times what others have together or, without others, the number itself.
type limit struct {
	atMost bool
	factor float64
	than   []part
}

func atMost(factor float64, than ...part) limit  { return limit{true, factor, than} }
func atLeast(factor float64, than ...part) limit { return limit{false, factor, than} }

// goal is a target: a metric of a row, and the limit that others set in the same column of the same
// run. Another run may have a slower machine.
type goal struct {
	topic  Topic
	column plan.Column
	of     part
	what   metric
	limit
	importance
}

// importance is whether a target has to be met.
type importance string

const (
	must importance = "must"
	aim  importance = "aim"
)

// Topic is what a target is about.
type Topic string

// The topics.
const (
	Rates    Topic = "rates"
	Requests Topic = "requests"
	Memory   Topic = "memory"
	Recipes  Topic = "recipes"
	Batch1   Topic = "batch 1"
	OneClaim Topic = "one claim"
	Scale    Topic = "scale"
)

// goals are all targets.
//
// With kube-controller-manager's own limits, batches save the PV controller's requests. With higher
// limits the processors limit every provisioner. A container for each claim is a Job and a PV. The
// writes of a single claim are those that test/e2e/requests_test.go lists. Those of a batch of 64
// hold only if every Job is full, which that test makes sure of. Here the first Jobs of a burst are
// not, so that the numbers are aims.
var goals = []goal{
	{Memory, plan.Memory, bound("ours"), heapEach, atMost(1900), must},
	{Memory, plan.Memory, bound("ours"), rss, atMost(330), must},
	{Memory, plan.Memory, bound("ours"), peak, atMost(600), must},
	{Memory, plan.Memory, bound("ours"), heapEach, atMost(0.5, bound("base")), must},
	{Memory, plan.Memory, bound("ours"), rss, atMost(0.5, bound("base")), must},
	{Memory, plan.Memory, bound("ours"), peak, atMost(0.5, bound("base")), must},
	{Memory, plan.Memory, bound("ours"), rss, atMost(0.5, bound("csi")), must},
	{Memory, plan.Memory, bound("ours"), peak, atMost(0.5, bound("csi")), must},

	{Recipes, plan.Raised, bound("recipe"), rate, atLeast(2, bound("ours-1")), must},
	{Recipes, plan.Raised, deleted("recipe"), rate, atLeast(2, deleted("ours-1")), must},
	{Recipes, plan.Raised, bound("recipe"), allCPU, atMost(0.5, bound("ours-1")), must},
	{Recipes, plan.Raised, deleted("recipe"), allCPU, atMost(0.5, deleted("ours-1")), must},
	{Recipes, plan.Raised, bound("recipe"), rate, atLeast(1, bound("csi")), must},
	{Recipes, plan.Raised, deleted("recipe"), rate, atLeast(0.9, deleted("csi")), must},
	{Recipes, plan.Stock, bound("recipe"), rate, atLeast(1.2, bound("csi")), must},

	{Batch1, plan.Raised, bound("ours-1"), ownCPU, atMost(0.5, bound("base-1")), must},
	{Batch1, plan.Raised, deleted("ours-1"), ownCPU, atMost(0.5, deleted("base-1")), must},
	{Batch1, plan.Raised, bound("ours-1"), allCPU, atMost(0.9, bound("base-1")), must},
	{Batch1, plan.Raised, deleted("ours-1"), allCPU, atMost(0.9, deleted("base-1")), must},
	{Batch1, plan.Raised, bound("ours-1"), allCPU, atMost(1.4, bound("jobs"), bound("floor")), must},
	{Batch1, plan.Raised, deleted("ours-1"), allCPU, atMost(1.4, bound("jobs"), deleted("floor")), must},

	{OneClaim, plan.One, bound("one-ours"), p50, atMost(0.75), must},
	{OneClaim, plan.One, deleted("one-ours"), p50, atMost(2), must},
	{OneClaim, plan.One, bound("one-ours"), p50, atMost(1.25, bound("one-jobs"), bound("one-floor")), must},
	{OneClaim, plan.One, bound("one-ours"), p50, atMost(0.25, bound("one-local-path")), must},
	{OneClaim, plan.One, deleted("one-ours"), p50, atMost(0.6, deleted("one-local-path")), must},
	{OneClaim, plan.One, bound("one-cinder"), p50, atMost(1), aim},

	{Scale, plan.Scale, bound("ours"), ready, atMost(0.7, bound("base")), must},
	{Scale, plan.Scale, bound("ours"), firstJob, atMost(0.7, bound("base")), must},
	{Scale, plan.Scale, bound("ours"), death, atMost(0.7, bound("base")), must},
	{Scale, plan.Scale, bound("ours"), stop, atMost(0.7, bound("base")), must},

	{Rates, plan.Stock, bound("ours-64"), rate, atLeast(1.25, bound("csi")), must},
	{Rates, plan.Raised, bound("ours-64"), rate, atLeast(1, bound("csi")), must},
	{Rates, plan.Max, bound("ours-64"), rate, atLeast(1, bound("csi")), must},
	{Rates, plan.Stock, deleted("ours-64"), rate, atLeast(1, deleted("csi")), must},
	{Rates, plan.Raised, deleted("ours-64"), rate, atLeast(1, deleted("csi")), must},
	{Rates, plan.Max, deleted("ours-64"), rate, atLeast(1, deleted("csi")), must},
	{Rates, plan.Raised, bound("ours-16"), rate, atLeast(0.9, bound("ours-64")), must},
	{Rates, plan.Raised, bound("ours-64"), allCPU, atMost(1, bound("csi")), must},
	{Rates, plan.Max, bound("ours-64"), allCPU, atMost(1, bound("csi")), must},

	{Requests, plan.Raised, bound("ours-64"), requested, atMost(1, bound("csi")), must},
	{Requests, plan.Max, bound("ours-64"), requested, atMost(1, bound("csi")), must},
	{Requests, plan.Raised, bound("ours-1"), writes, atMost(6), must},
	{Requests, plan.Raised, bound("ours-64"), writes, atMost(1.1), aim},
	{Requests, plan.Raised, deleted("ours-1"), writes, atMost(7), must},
	{Requests, plan.Raised, deleted("ours-64"), writes, atMost(2.1), aim},
	{Requests, plan.Raised, bound("ours-1"), reads, atMost(0), must},
	{Requests, plan.Raised, bound("ours-64"), reads, atMost(0), must},
	{Requests, plan.Raised, bound("ours-1"), refused, atMost(0), must},
	{Requests, plan.Raised, bound("ours-64"), refused, atMost(0), must},
	{Requests, plan.Raised, deleted("ours-64"), refused, atMost(0), must},
	{Requests, plan.Raised, bound("ours-1"), events, atMost(1), must},
}

// figure returns what was measured of a row.
func (g goal) figure(r Results, of part) (value float64, measured bool) {
	one := r.Find(g.column, of.row)
	if one == nil {
		return 0, false
	}
	if g.what.of == nil {
		value, measured = one.Figures[g.what.name]
		return value, measured
	}
	phase := one.Provision
	if of.deletion {
		phase = one.Delete
	}
	if phase == nil || len(phase.Done) == 0 {
		return 0, false
	}
	value = g.what.of(phase)
	return value, value > 0 || g.what.zero
}

// target judges a run.
func (g goal) target(r Results) Target {
	others, complete := 0.0, true
	for _, other := range g.than {
		value, measured := g.figure(r, other)
		others += value
		complete = complete && measured
	}
	value, measured := g.figure(r, g.of)
	t := Target{
		Topic: g.topic, What: g.text(), Must: g.importance == must, AtMost: g.atMost,
		Want: g.factor * others, Measured: value, Result: Unmeasured,
	}
	if len(g.than) == 0 {
		t.Want, others = g.factor, g.factor
	}
	if measured && complete {
		t.judge(others)
	}
	return t
}

// text says what is wanted, such as "raised: ours-1, CPU ms for each provision ≤ 1.4 × jobs + floor".
func (g goal) text() string {
	verb, noun, sign := "bound", "provision", " ≥ "
	if g.of.deletion {
		verb, noun = "deleted", "deletion"
	}
	if g.atMost {
		sign = " ≤ "
	}
	out := string(g.column) + ": " + g.of.row
	switch {
	case g.what.of == nil:
		out += ", " + g.what.name
	case g.what.each:
		out += ", " + g.what.name + " for each " + noun
	case g.what.name == "":
		out += " " + verb
	default:
		out += " " + verb + ", " + g.what.name
	}
	out += sign + number(g.factor)
	var names []string
	for _, other := range g.than {
		names = append(names, other.row)
	}
	if len(names) > 0 {
		out += " × " + strings.Join(names, " + ")
	}
	return out
}

// Targets judges a run, those that have to be met first.
func Targets(r Results) []Target {
	var first, aims []Target
	for _, g := range goals {
		if g.importance == aim {
			aims = append(aims, g.target(r))
		} else {
			first = append(first, g.target(r))
		}
	}
	return append(first, aims...)
}

// TargetsOf judges a run by the targets of some topics.
func TargetsOf(r Results, topics ...Topic) []Target {
	return slices.DeleteFunc(Targets(r), func(t Target) bool { return !slices.Contains(topics, t.Topic) })
}
