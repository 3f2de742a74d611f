package report

import (
	"github.com/flex-provisioner/flex-provisioner/test/bench/audit"
	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
)

// Judgement says whether a target was met.
type Judgement string

// The judgements.
const (
	Met        Judgement = "met"
	Missed     Judgement = "missed"
	Unmeasured Judgement = "not measured"
)

// Target is a number that is to be reached in the same run.
type Target struct {
	What string `json:"what"`
	// Must is set on targets that have to be met. The others are aims.
	Must bool `json:"must"`
	// AtMost is set where less is better.
	AtMost bool `json:"atMost,omitempty"`
	// Want and Measured are rates or requests for each claim. Ratio is Measured / Want, 0 where
	// Want is 0.
	Want     float64   `json:"want"`
	Measured float64   `json:"measured"`
	Ratio    float64   `json:"ratio,omitempty"`
	Result   Judgement `json:"result"`
}

// judged fills in Ratio and Result. A rate of 0 was not measured.
func (t Target) judged(measured bool) Target {
	switch {
	case !measured:
		t.Result = Unmeasured
		return t
	case t.AtMost && t.Measured <= t.Want, !t.AtMost && t.Measured >= t.Want:
		t.Result = Met
	default:
		t.Result = Missed
	}
	if t.Want > 0 {
		t.Ratio = t.Measured / t.Want
	}
	return t
}

// comparison is a target that is a part of what another row reached in the same column.
type comparison struct {
	column   plan.Column
	row      string
	factor   float64
	other    string
	deletion bool
	must     bool
}

// comparisons: with kube-controller-manager's own limits, batches save the PV controller's requests.
// With higher limits the processors limit every provisioner.
var comparisons = []comparison{
	{column: plan.Stock, row: "ours-64", factor: 1.25, other: "csi", must: true},
	{column: plan.Raised, row: "ours-64", factor: 1, other: "csi", must: true},
	{column: plan.Max, row: "ours-64", factor: 1, other: "csi", must: true},
	{column: plan.Stock, row: "ours-64", factor: 1, other: "csi", deletion: true, must: true},
	{column: plan.Raised, row: "ours-64", factor: 1, other: "csi", deletion: true, must: true},
	{column: plan.Max, row: "ours-64", factor: 1, other: "csi", deletion: true, must: true},
	{column: plan.Raised, row: "ours-16", factor: 0.9, other: "ours-64", must: true},
}

func (c comparison) target(r Results) Target {
	phase, verb := r.provision, "bound"
	if c.deletion {
		phase, verb = r.remove, "deleted"
	}
	ours, theirs := phase(c.column, c.row).Rate(), phase(c.column, c.other).Rate()
	t := Target{
		What: string(c.column) + ": " + c.row + " " + verb + " ≥ " + number(c.factor) + " × " + c.other,
		Must: c.must, Want: c.factor * theirs, Measured: ours,
	}
	return t.judged(ours > 0 && theirs > 0)
}

// OurActor is the user of our dispatcher in the audit log.
const OurActor = "flex-dispatcher"

// budget is how many requests of a kind our dispatcher may send for each claim.
type budget struct {
	what     string
	row      string
	deletion bool
	most     float64
	must     bool
	count    func(audit.Count) int
}

func only(is func(audit.Count) bool) func(audit.Count) int {
	return func(c audit.Count) int {
		if is(c) {
			return c.N
		}
		return 0
	}
}

func conflicts(c audit.Count) int { return c.Conflicts }

// budgets: the writes of a single claim are those that test/e2e/requests_test.go lists. Those of a
// batch of 64 hold only if every Job is full, which that test makes sure of. Here the first Jobs of
// a burst are not, so that the numbers are aims.
var budgets = []budget{
	{what: "writes", row: "ours-1", most: 6, must: true, count: only(audit.Count.IsWrite)},
	{what: "writes", row: "ours-64", most: 1.1, count: only(audit.Count.IsWrite)},
	{what: "writes", row: "ours-1", deletion: true, most: 7, must: true, count: only(audit.Count.IsWrite)},
	{what: "writes", row: "ours-64", deletion: true, most: 2.1, count: only(audit.Count.IsWrite)},
	{what: "reads", row: "ours-1", must: true, count: only(audit.Count.IsRead)},
	{what: "reads", row: "ours-64", must: true, count: only(audit.Count.IsRead)},
	{what: "conflicts", row: "ours-1", must: true, count: conflicts},
	{what: "conflicts", row: "ours-64", must: true, count: conflicts},
	{what: "conflicts", row: "ours-64", deletion: true, must: true, count: conflicts},
	{what: "events", row: "ours-1", most: 1, must: true, count: only(audit.Count.IsEvent)},
}

func (b budget) target(r Results, column plan.Column) Target {
	phase, verb := r.provision(column, b.row), "provision"
	if b.deletion {
		phase, verb = r.remove(column, b.row), "deletion"
	}
	t := Target{
		What: string(column) + ": " + b.row + ", " + b.what + " for each " + verb + " ≤ " + number(b.most),
		Must: b.must, AtMost: true, Want: b.most, Measured: phase.perClaim(OurActor, b.count),
	}
	return t.judged(phase != nil)
}

// single is within how many seconds half of the claims that come one after the other are to be done.
type single struct {
	row      string
	deletion bool
	most     float64
	must     bool
}

var singles = []single{
	{row: "one-ours", most: 0.75, must: true},
	{row: "one-ours", deletion: true, most: 2, must: true},
	{row: "one-cinder", most: 1},
}

func (s single) target(r Results) Target {
	phase, verb := r.provision(plan.One, s.row), "bound"
	if s.deletion {
		phase, verb = r.remove(plan.One, s.row), "deleted"
	}
	t := Target{
		What: "one claim on a real node: " + s.row + " " + verb + ", p50 ≤ " + number(s.most) + " s",
		Must: s.must, AtMost: true, Want: s.most, Measured: phase.Quantile(0.5),
	}
	return t.judged(phase != nil)
}

// Targets judges a run, those that have to be met first.
func Targets(r Results) []Target {
	var must, aims []Target
	add := func(t Target) {
		if t.Must {
			must = append(must, t)
		} else {
			aims = append(aims, t)
		}
	}
	for _, c := range comparisons {
		add(c.target(r))
	}
	for _, c := range costs {
		add(c.target(r))
	}
	for _, b := range budgets {
		add(b.target(r, plan.Raised))
	}
	for _, one := range singles {
		add(one.target(r))
	}
	return append(must, aims...)
}
