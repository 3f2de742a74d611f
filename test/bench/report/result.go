package report

import (
	"slices"

	"github.com/flex-provisioner/flex-provisioner/test/bench/audit"
	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
)

// Result is what was measured of one cell.
type Result struct {
	Column plan.Column `json:"column"`
	Row    string      `json:"row"`
	Claims int         `json:"claims"`
	// Provision lasts from the first claim's creation until the last one is bound, for bare Jobs
	// until the last Job is complete.
	Provision *Phase `json:"provision,omitempty"`
	// Delete lasts from the first claim's deletion until the last PV no longer exists.
	Delete *Phase `json:"delete,omitempty"`
	// Bound and Deleted are the rates of every run, if there were several. The phases are those of
	// the run with the median rate.
	Bound   []float64 `json:"bound,omitempty"`
	Deleted []float64 `json:"deleted,omitempty"`
	// Figures are what is measured of a cell without phases, by their names.
	Figures map[string]float64 `json:"figures,omitempty"`
	// Error is why the cell was not measured to its end.
	Error string `json:"error,omitempty"`
}

// Phase is what happened while so many claims were provisioned or deleted.
type Phase struct {
	// Asked and Done are seconds since the first claim: when each was created or deleted, and when
	// it was done. Both are sorted.
	Asked []float64 `json:"asked"`
	Done  []float64 `json:"done"`
	// Took are seconds, for each claim from its own creation or deletion, sorted.
	Took []float64 `json:"took"`
	// Steps are those of claims that came one after the other.
	Steps []Step `json:"steps,omitempty"`
	// Requests to the API server, until none came any more.
	Requests  []audit.Count `json:"requests"`
	Processes []Process     `json:"processes"`
}

// Process is what a process used.
type Process struct {
	Name string `json:"name"`
	// CPU is seconds of this phase, RSS and Peak are MiB at its end.
	CPU  float64 `json:"cpu"`
	RSS  float64 `json:"rss"`
	Peak float64 `json:"peak"`
}

// Rate returns how many claims were done a second, 0 if there is no such phase.
func (p *Phase) Rate() float64 {
	if p == nil || len(p.Done) == 0 || p.Done[len(p.Done)-1] <= 0 {
		return 0
	}
	return float64(len(p.Done)) / p.Done[len(p.Done)-1]
}

// Quantile returns the time within which such a part of the claims was done.
func (p *Phase) Quantile(part float64) float64 {
	if p == nil || len(p.Took) == 0 {
		return 0
	}
	return p.Took[min(len(p.Took)-1, int(part*float64(len(p.Took))))]
}

// perClaim returns the sum of a number over the requests of an actor (of all, if it is empty), for
// each claim.
func (p *Phase) perClaim(actor string, number func(audit.Count) int) float64 {
	if p == nil || len(p.Done) == 0 {
		return 0
	}
	sum := 0
	for _, c := range p.Requests {
		if actor == "" || c.Actor == actor {
			sum += number(c)
		}
	}
	return float64(sum) / float64(len(p.Done))
}

// actors returns who asked for anything, sorted.
func (p *Phase) actors() []string {
	if p == nil {
		return nil
	}
	var out []string
	for _, c := range p.Requests {
		out = append(out, c.Actor)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// CPU returns the milliseconds that a process used for each claim.
func (p *Phase) CPU(name string) float64 {
	if p == nil || len(p.Done) == 0 {
		return 0
	}
	sum := 0.0
	for _, process := range p.Processes {
		if process.Name == name {
			sum += process.CPU
		}
	}
	return 1000 * sum / float64(len(p.Done))
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

// Results are those of a run.
type Results []Result

// Find returns the result of a cell, nil if there is none.
func (r Results) Find(column plan.Column, row string) *Result {
	i := slices.IndexFunc(r, func(one Result) bool { return one.Column == column && one.Row == row })
	if i < 0 {
		return nil
	}
	return &r[i]
}

// provision and remove return the phase of a cell, nil if it was not measured.
func (r Results) provision(column plan.Column, row string) *Phase {
	if one := r.Find(column, row); one != nil {
		return one.Provision
	}
	return nil
}

func (r Results) remove(column plan.Column, row string) *Phase {
	if one := r.Find(column, row); one != nil {
		return one.Delete
	}
	return nil
}

// Add appends a claim that came after all others: its time counts from the end of the one before.
func (p *Phase) Add(next *Phase) {
	last := 0.0
	if len(p.Done) > 0 {
		last = p.Done[len(p.Done)-1]
	}
	for _, asked := range next.Asked {
		p.Asked = append(p.Asked, last+asked)
	}
	for _, done := range next.Done {
		p.Done = append(p.Done, last+done)
	}
	p.Took = append(p.Took, next.Took...)
	slices.Sort(p.Took)
	p.Steps = addSteps(p.Steps, next.Steps)
}
