package report

import (
	"slices"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
)

// lasted is a phase in which one claim was done after so many seconds.
func lasted(seconds float64) *Phase { return &Phase{Done: []float64{seconds}} }

func TestEachPhaseIsThatOfTheRunWithTheMedianRate(t *testing.T) {
	of := func(provision, remove float64) Result {
		return Result{Column: plan.Max, Row: "csi", Provision: lasted(provision), Delete: lasted(remove)}
	}
	alone := Result{Column: plan.Stock, Row: "csi", Provision: lasted(8)}
	got := Results{of(2, 1), alone, of(4, 4), of(1, 2)}.Medians()
	if len(got) != 2 || got[0].Provision.Rate() != 0.5 || got[0].Delete.Rate() != 0.5 {
		t.Fatalf("got %+v", got)
	}
	if want := []float64{0.25, 0.5, 1}; !slices.Equal(got[0].Bound, want) || !slices.Equal(got[0].Deleted, want) {
		t.Errorf("rates %v and %v, want %v", got[0].Bound, got[0].Deleted, want)
	}
	if got[1].Provision.Rate() != 0.125 || got[1].Bound != nil {
		t.Errorf("a cell that was measured once: %+v", got[1])
	}
}

func TestARunThatFailedIsTheLowestAndSaysSo(t *testing.T) {
	ok := Result{Column: plan.Max, Row: "csi", Provision: lasted(1)}
	failed := Result{Column: plan.Max, Row: "csi", Error: "the API server ended"}
	got := Results{ok, failed, ok}.Medians()[0]
	if got.Error == "" || got.Provision.Rate() != 1 || got.Bound[0] != 0 {
		t.Errorf("got %+v", got)
	}
}
