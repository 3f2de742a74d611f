package report

import (
	"strings"

	"github.com/flex-provisioner/flex-provisioner/test/bench/audit"
	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
)

// cost is a target for what a claim costs a cluster, whose machine may be faster: at most so many
// times what the other rows cost together in the same column.
type cost struct {
	what     string
	column   plan.Column
	row      string
	deletion bool
	factor   float64
	others   []part
	of       func(*Phase) float64
}

// part is a phase of another row.
type part struct {
	row      string
	deletion bool
}

// costs: a container for each claim is a Job and a PV. A batch is compared with csi, where no
// container is started.
var costs = []cost{
	{what: "CPU ms", column: plan.Raised, row: "ours-1", factor: 1.4, others: []part{{row: "jobs"}, {row: "floor"}}, of: (*Phase).allCPU},
	{what: "CPU ms", column: plan.Raised, row: "ours-1", deletion: true, factor: 1.4, others: []part{{row: "jobs"}, {row: "floor", deletion: true}}, of: (*Phase).allCPU},
	{what: "CPU ms", column: plan.Raised, row: "ours-64", factor: 1, others: []part{{row: "csi"}}, of: (*Phase).allCPU},
	{what: "CPU ms", column: plan.Max, row: "ours-64", factor: 1, others: []part{{row: "csi"}}, of: (*Phase).allCPU},
	{what: "requests", column: plan.Raised, row: "ours-64", factor: 1, others: []part{{row: "csi"}}, of: (*Phase).allRequests},
	{what: "requests", column: plan.Max, row: "ours-64", factor: 1, others: []part{{row: "csi"}}, of: (*Phase).allRequests},
}

func (c cost) target(r Results) Target {
	own, verb := r.phase(c.column, part{row: c.row, deletion: c.deletion}), "provision"
	if c.deletion {
		verb = "deletion"
	}
	var sum float64
	var names []string
	complete := c.of(own) > 0
	for _, other := range c.others {
		one := c.of(r.phase(c.column, other))
		sum += one
		complete = complete && one > 0
		names = append(names, other.row)
	}
	t := Target{
		What: string(c.column) + ": " + c.row + ", " + c.what + " for each " + verb + " ≤ " + number(c.factor) + " × " + strings.Join(names, " + "),
		Must: true, AtMost: true, Want: c.factor * sum, Measured: c.of(own),
	}
	return t.judged(complete)
}

// phase returns a phase of a row, nil if it was not measured.
func (r Results) phase(column plan.Column, of part) *Phase {
	if of.deletion {
		return r.remove(column, of.row)
	}
	return r.provision(column, of.row)
}

// allCPU returns the milliseconds that all processes used for each claim.
func (p *Phase) allCPU() float64 {
	sum := 0.0
	for _, name := range append(components, Provisioner) {
		sum += p.CPU(name)
	}
	return sum
}

// allRequests returns the requests of all for each claim.
func (p *Phase) allRequests() float64 {
	return p.perClaim("", func(c audit.Count) int { return c.N })
}
