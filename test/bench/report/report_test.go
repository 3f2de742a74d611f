package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flex-provisioner/flex-provisioner/test/bench/audit"
	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
	"github.com/flex-provisioner/flex-provisioner/test/bench/report"
)

// at returns a phase in which so many claims were done at a steady rate.
func at(rate float64, claims int, requests ...audit.Count) *report.Phase {
	p := &report.Phase{Requests: requests}
	for i := range claims {
		p.Asked = append(p.Asked, 0)
		p.Done = append(p.Done, float64(i+1)/rate)
		p.Took = append(p.Took, float64(i+1)/rate)
	}
	return p
}

func target(t *testing.T, r report.Results, what string) report.Target {
	t.Helper()
	for _, one := range report.Targets(r) {
		if strings.HasPrefix(one.What, what) {
			return one
		}
	}
	t.Fatalf("there is no target %q", what)
	return report.Target{}
}

func TestARateIsClaimsBySecondsUntilTheLastOne(t *testing.T) {
	if got := at(40, 100).Rate(); got < 39.9 || got > 40.1 {
		t.Errorf("%g", got)
	}
	if got := (*report.Phase)(nil).Rate(); got != 0 {
		t.Errorf("without a phase: %g", got)
	}
	if got := at(10, 100).Quantile(0.5); got < 4.9 || got > 5.2 {
		t.Errorf("p50 %g", got)
	}
}

func TestATargetIsComparedWithTheOtherRowOfTheSameColumn(t *testing.T) {
	results := report.Results{
		{Column: plan.Stock, Row: "csi", Provision: at(4, 50)},
		{Column: plan.Stock, Row: "ours-64", Provision: at(5, 50)},
		{Column: plan.Raised, Row: "csi", Provision: at(40, 50)},
		{Column: plan.Raised, Row: "ours-64", Provision: at(30, 50)},
		{Column: plan.Max, Row: "csi", Provision: at(60, 50)},
	}
	for what, want := range map[string]report.Judgement{
		"stock: ours-64 bound ≥ 1.25 × csi":        report.Met,
		"raised: ours-64 bound ≥ 1 × csi":          report.Missed,
		"max: ours-64 bound ≥ 1 × csi":             report.Unmeasured,
		"stock: ours-64 deleted ≥ 1 × csi":         report.Unmeasured,
		"raised: ours-16 bound ≥ 0.9 × ours-64":    report.Unmeasured,
		"raised: ours-1, reads for each provision": report.Unmeasured,
	} {
		if got := target(t, results, what); got.Result != want {
			t.Errorf("%s: %v, want %s", what, got, want)
		}
	}
	if got := target(t, results, "raised: ours-64 bound ≥ 1 × csi"); got.Want < 39.9 || got.Want > 40.1 || got.Ratio < 0.74 || got.Ratio > 0.76 {
		t.Errorf("%v", got)
	}
}

func TestRequestsOfOurDispatcherAreCountedForEachClaim(t *testing.T) {
	of := func(actor, verb, resource string, n, conflicts int) audit.Count {
		return audit.Count{Actor: actor, Verb: verb, Resource: resource, N: n, Conflicts: conflicts}
	}
	results := report.Results{{Column: plan.Raised, Row: "ours-1", Provision: at(10, 100,
		of(report.OurActor, "create", "jobs", 100, 0), of(report.OurActor, "patch", "pods", 400, 1),
		of(report.OurActor, "create", "events", 150, 0), of("binder", "update", "persistentvolumeclaims", 200, 7))}}
	for what, want := range map[string]struct {
		measured float64
		result   report.Judgement
	}{
		"raised: ours-1, writes":    {5, report.Met},
		"raised: ours-1, reads":     {0, report.Met},
		"raised: ours-1, conflicts": {0.01, report.Missed},
		"raised: ours-1, events":    {1.5, report.Missed},
	} {
		if got := target(t, results, what); got.Measured != want.measured || got.Result != want.result {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
}

// What a claim costs is compared with what the others cost together, and only if all were measured.
func TestTheCostOfAClaimIsThatOfAllProcesses(t *testing.T) {
	using := func(seconds float64) *report.Phase {
		p := at(10, 100)
		p.Processes = []report.Process{{Name: "kube-apiserver", CPU: seconds}, {Name: report.Provisioner, CPU: seconds}}
		return p
	}
	const what = "raised: ours-1, CPU ms for each provision ≤ 1.4 × jobs + floor"
	results := report.Results{
		{Column: plan.Raised, Row: "jobs", Provision: using(2)},
		{Column: plan.Raised, Row: "ours-1", Provision: using(4.5)},
	}
	if got := target(t, results, what); got.Result != report.Unmeasured {
		t.Errorf("without the floor: %v", got)
	}
	results = append(results, report.Result{Column: plan.Raised, Row: "floor", Provision: using(1)})
	if got := target(t, results, what); got.Result != report.Missed || got.Measured != 90 || got.Want < 83.9 || got.Want > 84.1 {
		t.Errorf("%v", got)
	}
}

func TestTheTextHasEveryRowWhatWasMissedAndWhatFailed(t *testing.T) {
	phase := at(4, 50, audit.Count{Actor: "binder", Verb: "update", Resource: "persistentvolumeclaims", N: 100, Conflicts: 50})
	phase.Processes = []report.Process{{Name: "etcd", CPU: 1}, {Name: report.Provisioner, CPU: 2, RSS: 30, Peak: 40}}
	text := report.Text(report.Results{
		{Column: plan.Stock, Row: "csi", Claims: 50, Provision: phase, Delete: at(8, 50)},
		{Column: plan.Stock, Row: "ours-64", Claims: 50, Provision: at(2, 50)},
		{Column: plan.Max, Row: "floor", Error: "it ended early"},
		in(plan.Memory, "csi", map[string]float64{report.RSS: 900, report.Peak: 1000}),
	})
	for _, row := range plan.Rows {
		if !strings.Contains(text, row.Title) {
			t.Errorf("no row %q", row.Title)
		}
	}
	for _, want := range []string{
		`csi external-provisioner, tuned +4 +8 +– +– +– +–`,
		`rates +stock: ours-64 bound ≥ 1\.25 × csi +must +5 +2 +0\.5 +missed`,
		`stock/csi +50 +0 +6\.5 +12 +3\.25 +6`,
		`binder +2 +2 +0 +0 +1 +update persistentvolumeclaims 2`,
		`stock/csi bound +2 +60 +– +20 +– +– +40 +30 +40`,
		`memory/csi +0 +RSS MiB 900, peak MiB 1000`,
		`max/floor +it ended early`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
}

func TestTheSummaryCountsWhatHasToBeMet(t *testing.T) {
	results := report.Results{
		{Column: plan.Stock, Row: "csi", Provision: at(4, 50)},
		{Column: plan.Stock, Row: "ours-64", Provision: at(5, 50)},
		{Column: plan.Raised, Row: "csi", Provision: at(40, 50)},
		{Column: plan.Raised, Row: "ours-64", Provision: at(30, 50)},
	}
	const want = "49 targets have to be met: 3 are met, 1 are missed, 45 were not measured"
	if got := report.Summary(results); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestThePlotIsXMLWithALineForEachMeasuredRow(t *testing.T) {
	svg := report.SVG(report.Results{
		{Column: plan.Stock, Row: "csi", Provision: at(4, 5000)},
		{Column: plan.Stock, Row: "floor", Provision: at(7, 50)},
		{Column: plan.Max, Row: "jobs"},
	})
	for in := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := in.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(svg, `stroke-width="1.5"`); got != 2 {
		t.Errorf("%d lines, want 2", got)
	}
	if strings.Contains(svg, "max: ") {
		t.Error("a column without a measurement is plotted")
	}
	if len(svg) > 10_000 {
		t.Errorf("%d bytes: every claim is drawn", len(svg))
	}
}

func TestATimelineCountsFromTheFirstClaim(t *testing.T) {
	start := time.Unix(100, 0)
	line := report.NewTimeline(2)
	line.Done("b", start) // it was not asked for yet
	line.Asked("a", start)
	line.Asked("b", start.Add(time.Second))
	line.Done("b", start.Add(2*time.Second))
	line.Done("b", start.Add(9*time.Second))
	select {
	case <-line.Complete():
		t.Error("complete, with one claim left")
	default:
	}
	if line.Left() != 1 {
		t.Errorf("%d left, want 1", line.Left())
	}
	line.Done("a", start.Add(3*time.Second))
	<-line.Complete()
	want := &report.Phase{Asked: []float64{0, 1}, Done: []float64{2, 3}, Took: []float64{1, 3}}
	if diff := cmp.Diff(want, line.Phase()); diff != "" {
		t.Error(diff)
	}
}

func TestAClaimOnARealNodeIsBoundSoonEnough(t *testing.T) {
	for took, want := range map[float64]report.Judgement{0.7: report.Met, 0.8: report.Missed} {
		phase := &report.Phase{Asked: []float64{0}, Done: []float64{took}, Took: []float64{took}}
		results := report.Results{{Column: plan.One, Row: "one-ours", Claims: 1, Provision: phase}}
		if got := target(t, results, "one: one-ours bound, p50 s ≤ 0.75"); got.Result != want {
			t.Errorf("%v, want %s", got, want)
		}
		if text := report.Text(results); !strings.Contains(text, "one/one-ours") {
			t.Errorf("no row of it in\n%s", text)
		}
	}
}

// A step that was over before the last one took nothing, so the steps of a claim are its whole time.
func TestTheStepsOfAClaimAreItsWholeTime(t *testing.T) {
	start := time.Now()
	phase := &report.Phase{}
	for i := range 3 {
		trace := report.NewTrace(start)
		for step, after := range map[string]int{report.JobCreated: 300, report.EarlierPodEnded: 200, report.PVGone: 700 + 100*i} {
			trace.Note(step, start.Add(time.Duration(after)*time.Millisecond))
			trace.Note(step, start.Add(time.Hour)) // only the first time counts
		}
		phase.Add(&report.Phase{Steps: trace.Steps()})
	}
	var got []string
	text := report.Text(report.Results{{Column: plan.One, Row: "one-ours", Delete: phase}})
	for line := range strings.SplitSeq(text, "\n") {
		if fields := strings.Fields(line); len(fields) > 3 && slices.Contains([]string{"Job", "earlier", "PV"}, fields[0]) {
			got = append(got, strings.Join(fields, " "))
		}
	}
	if diff := cmp.Diff([]string{"Job created 3 300 300", "earlier pod ended 3 0 200", "PV gone 3 500 800"}, got); diff != "" {
		t.Error(diff)
	}
}
