package report

import (
	"cmp"
	"slices"
)

// Medians returns one result for each cell. Of a cell that was measured several times, each phase
// is that of the run with the median rate.
func (r Results) Medians() Results {
	var out Results
	for _, one := range r {
		if out.Find(one.Column, one.Row) == nil {
			out = append(out, r.median(one))
		}
	}
	return out
}

// median returns the median of the runs of the first one's cell. A run that failed has no rate, and
// fails the cell.
func (r Results) median(first Result) Result {
	var runs Results
	for _, one := range r {
		if one.Column != first.Column || one.Row != first.Row {
			continue
		}
		runs = append(runs, one)
		first.Error = cmp.Or(first.Error, one.Error)
	}
	if len(runs) == 1 {
		return first
	}
	first.Provision, first.Bound = medianPhase(runs, func(one Result) *Phase { return one.Provision })
	first.Delete, first.Deleted = medianPhase(runs, func(one Result) *Phase { return one.Delete })
	return first
}

// medianPhase returns the phase with the median rate, the slower one of two, and all rates, the
// lowest first.
func medianPhase(runs Results, of func(Result) *Phase) (*Phase, []float64) {
	var phases []*Phase
	var rates []float64
	for _, one := range runs {
		phases = append(phases, of(one))
		rates = append(rates, of(one).Rate())
	}
	slices.SortFunc(phases, func(a, b *Phase) int { return cmp.Compare(a.Rate(), b.Rate()) })
	slices.Sort(rates)
	return phases[(len(phases)-1)/2], rates
}
