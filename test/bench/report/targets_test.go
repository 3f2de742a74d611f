package report_test

import (
	"math"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/test/bench/audit"
	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
	"github.com/flex-provisioner/flex-provisioner/test/bench/report"
)

// used returns a phase for which the provisioner and the API server took so many milliseconds of a
// claim, each.
func used(rate, own, server float64) *report.Phase {
	p := at(rate, 100, audit.Count{Actor: "user", Verb: "create", Resource: "jobs", N: 100})
	p.Processes = []report.Process{{Name: "kube-apiserver", CPU: server / 10}, {Name: report.Provisioner, CPU: own / 10}}
	return p
}

func in(column plan.Column, row string, figures map[string]float64) report.Result {
	return report.Result{Column: column, Row: row, Figures: figures}
}

func TestEachFormulaOfATargetIsJudgedByItsFigures(t *testing.T) {
	results := report.Results{
		in(plan.Memory, "ours", map[string]float64{report.HeapEach: 1400, report.RSS: 300, report.Peak: 700}),
		in(plan.Memory, "base", map[string]float64{report.HeapEach: 2000, report.RSS: 600, report.Peak: 1200}),
		in(plan.Memory, "csi", map[string]float64{report.RSS: 900}),
		in(plan.Scale, "ours", map[string]float64{report.Ready: 3, report.AfterStop: 2}),
		in(plan.Scale, "base", map[string]float64{report.Ready: 5, report.AfterStop: 2}),
		{Column: plan.Raised, Row: "recipe", Provision: used(20, 1, 39), Delete: used(17, 1, 45)},
		{Column: plan.Raised, Row: "ours-1", Provision: used(9, 10, 70), Delete: used(9, 13, 72)},
		{Column: plan.Raised, Row: "base-1", Provision: used(9, 24, 70), Delete: used(9, 24, 70)},
		{Column: plan.Raised, Row: "csi", Provision: used(19, 1, 39), Delete: used(20, 1, 45)},
		{Column: plan.One, Row: "one-ours", Provision: at(1, 1), Delete: at(0.5, 1)},
		{Column: plan.One, Row: "one-local-path", Provision: at(0.25, 1), Delete: at(0.3, 1)},
	}
	for what, want := range map[string]struct {
		ratio  float64
		result report.Judgement
	}{
		"memory: ours, heap bytes a claim ≤ 1900":                        {0.737, report.Met},
		"memory: ours, heap bytes a claim ≤ 0.5 × base":                  {0.7, report.Missed},
		"memory: ours, RSS MiB ≤ 0.5 × base":                             {0.5, report.Met},
		"memory: ours, RSS MiB ≤ 0.5 × csi":                              {0.333, report.Met},
		"memory: ours, peak MiB ≤ 600":                                   {1.167, report.Missed},
		"memory: ours, peak MiB ≤ 0.5 × csi":                             {0, report.Unmeasured},
		"raised: recipe bound ≥ 2 × ours-1":                              {2.222, report.Met},
		"raised: recipe deleted ≥ 2 × ours-1":                            {1.889, report.Missed},
		"raised: recipe deleted ≥ 0.9 × csi":                             {0.85, report.Missed},
		"raised: recipe, CPU ms for each provision ≤ 0.5 × ours-1":       {0.5, report.Met},
		"raised: ours-1, its own CPU ms for each provision ≤ 0.5 × base": {0.417, report.Met},
		"raised: ours-1, its own CPU ms for each deletion ≤ 0.5 × base":  {0.542, report.Missed},
		"raised: ours-1, CPU ms for each deletion ≤ 0.9 × base-1":        {0.904, report.Missed},
		"one: one-ours bound, p50 s ≤ 0.25 × one-local-path":             {0.25, report.Met},
		"one: one-ours deleted, p50 s ≤ 0.6 × one-local-path":            {0.6, report.Met},
		"scale: ours, ready s ≤ 0.7 × base":                              {0.6, report.Met},
		"scale: ours, next Job s after a clean stop ≤ 0.7 × base":        {1, report.Missed},
		"scale: ours, first Job s ≤ 0.7 × base":                          {0, report.Unmeasured},
		"stock: recipe bound ≥ 1.2 × csi":                                {0, report.Unmeasured},
	} {
		if got := target(t, results, what); got.Result != want.result || math.Abs(got.Ratio-want.ratio) > 0.001 {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
}

func TestTargetsOfATopicAreAPartOfAll(t *testing.T) {
	memory := report.TargetsOf(nil, report.Memory)
	for _, one := range memory {
		if one.Topic != report.Memory {
			t.Errorf("%v", one)
		}
	}
	if len(memory) == 0 || len(memory) == len(report.Targets(nil)) {
		t.Errorf("%d targets are about memory", len(memory))
	}
}

// A row that no cell measures would leave its targets not measured for ever.
func TestEachRowOfATargetIsMeasuredInItsColumn(t *testing.T) {
	var all report.Results
	for _, cell := range plan.Cells(false) {
		all = append(all, report.Result{
			Column: cell.Column, Row: cell.Row.Name, Provision: used(1, 1, 1), Delete: used(1, 1, 1),
			Figures: map[string]float64{
				report.HeapEach: 1, report.RSS: 1, report.Peak: 1, report.Ready: 1, report.FirstJob: 1, report.AfterDeath: 1, report.AfterStop: 1,
			},
		})
	}
	said := map[string]bool{}
	for _, one := range report.Targets(all) {
		if one.Result == report.Unmeasured || said[one.What] {
			t.Errorf("%+v", one)
		}
		said[one.What] = true
	}
}
