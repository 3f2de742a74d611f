package test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/component-base/metrics"

	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/series"
)

// exported are the labels of series, by name: a registry that takes note of them.
type exported struct {
	metrics.KubeRegistry
	labels map[string][]string
}

// exportedSeries returns those of the code. The dispatcher serves those of client-go, too: a test of
// cmd/flex-dispatcher finds the one of the leader.
func exportedSeries() exported {
	e := exported{metrics.NewKubeRegistry(), map[string][]string{}}
	series.New().Register(e, func() series.Backlog { return series.Backlog{} })
	e.CustomMustRegister(&run.Gauges{})
	return e
}

func (e exported) MustRegister(all ...metrics.Registerable) {
	e.KubeRegistry.MustRegister(all...) // before that it has no description
	for _, m := range all {
		describe(e.labels, m.Describe)
	}
}

func (e exported) CustomMustRegister(all ...metrics.StableCollector) {
	e.KubeRegistry.CustomMustRegister(all...)
	for _, m := range all {
		describe(e.labels, m.Describe)
	}
}

var described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

func describe[D fmt.Stringer](into map[string][]string, describe func(chan<- D)) {
	out := make(chan D, 100)
	describe(out)
	close(out)
	for d := range out {
		m := described.FindStringSubmatch(d.String())
		into[m[1]] = strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' })
	}
}

// promWords are the words of PromQL that our expressions use.
var promWords = strings.Fields("sum min max topk count by on and unless absent time rate increase histogram_quantile last_over_time")

var (
	promText     = regexp.MustCompile(`"[^"]*"`)
	promSelector = regexp.MustCompile(`(\w+)\{([^}]*)\}`)
	promMatcher  = regexp.MustCompile(`(\w+) *(=~|!~|!=|=) *"([^"]*)"`)
	promGrouping = regexp.MustCompile(`\b(?:by|on) *\(([^)]*)\)`)
	promWord     = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]*`)
	promRange    = regexp.MustCompile(`\[[^\]]*\]`)
	promPart     = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// query is what an expression names.
type query struct {
	series   map[string]bool     // without the ending of a part of a histogram
	matchers map[string][]string // label and value, by series
	faults   []string
}

// read finds the series of an expression. promtool parses it in make check: this test reads only
// names, so that it knows those of the code.
func (e exported) read(expr string, values map[string][]string) query {
	q := query{series: map[string]bool{}, matchers: map[string][]string{}}
	fault := func(format string, args ...any) { q.faults = append(q.faults, fmt.Sprintf(format, args...)) }
	grouped := promGrouping.FindAllStringSubmatch(expr, -1)
	plain := promGrouping.ReplaceAllString(expr, "")
	for _, m := range promSelector.FindAllStringSubmatch(plain, -1) {
		name := promPart.ReplaceAllString(m[1], "")
		for _, matcher := range promMatcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(e.labels[name], matcher[1]) {
				fault("%s has no label %s", name, matcher[1])
			}
			for value := range strings.SplitSeq(matcher[3], "|") {
				if slices.Contains(e.labels[name], matcher[1]) && !slices.Contains(values[matcher[1]], value) {
					fault("the label %s has no value %s", matcher[1], value)
				}
			}
			q.matchers[name] = append(q.matchers[name], matcher[1]+matcher[2]+matcher[3])
		}
	}
	plain = promRange.ReplaceAllString(promSelector.ReplaceAllString(promText.ReplaceAllString(plain, `""`), "$1"), "")
	for _, word := range promWord.FindAllString(plain, -1) {
		name := promPart.ReplaceAllString(word, "")
		switch _, known := e.labels[name]; {
		case known:
			q.series[name] = true
		case !slices.Contains(promWords, word):
			fault("%s is no series of the code", word)
		}
	}
	for _, m := range grouped {
		for _, label := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			for name := range q.series {
				if label != "le" && !slices.Contains(e.labels[name], label) {
					fault("%s has no label %s", name, label)
				}
			}
		}
	}
	if len(q.series)+len(q.faults) == 0 {
		fault("no series of the code")
	}
	return q
}

// seriesAndLeader are those of the code, and the one of client-go that shows who leads.
func seriesAndLeader() exported {
	e := exportedSeries()
	e.labels["leader_election_master_status"] = []string{"name"}
	return e
}

// promValues are the values that an expression may compare a label with.
func promValues(t *testing.T) map[string][]string {
	t.Helper()
	verdicts := []string{
		string(contract.Done), string(contract.BadConfig), string(contract.BadRequest), string(contract.NoCapacity), string(contract.NoCredentials),
		string(contract.TryAgain), string(contract.NotStarted), string(contract.Disrupted), string(contract.Unknown), string(contract.Unlisted),
	}
	var verbs []string
	for _, v := range contract.Verbs() {
		verbs = append(verbs, string(v))
	}
	// A test of cmd/flex-dispatcher compares this row with the code.
	row := regexp.MustCompile("(?m)^\\| `state` \\| (.*)$").FindStringSubmatch(content(t, "docs/configuration.md"))
	var states []string
	for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
		states = append(states, m[1])
	}
	return map[string][]string{
		"verdict": verdicts, "reason": append(verdicts, reason.NamespaceNotListed), "verb": verbs, "state": states, "name": {options.Name}, "class": {"$class"},
	}
}

func TestAlertsNameOnlySeriesOfTheCode(t *testing.T) {
	known, values := seriesAndLeader(), promValues(t)
	for _, r := range rulesOf(t, read(t, "monitoring", "rules.yaml")) {
		for _, fault := range known.read(r.Expr, values).faults {
			t.Errorf("%s: %s", r.Alert, fault)
		}
	}
}

func TestAWrongExpressionIsFound(t *testing.T) {
	known, values := seriesAndLeader(), promValues(t)
	for expr, want := range map[string]string{
		`sum by (class) (flex_dispatcher_queue{verb="delete"}) > 0`:                              "",
		`histogram_quantile(0.9, sum by (le, verb) (rate(flex_dispatcher_attempts_bucket[5m])))`: "",
		`sum(flex_dispatcher_queues)`:                                                            "flex_dispatcher_queues is no series of the code",
		`flex_dispatcher_queue{reason="Done"}`:                                                   "flex_dispatcher_queue has no label reason",
		`sum by (kind) (flex_dispatcher_queue)`:                                                  "flex_dispatcher_queue has no label kind",
		`flex_dispatcher_jobs{state="blocked"}`:                                                  "the label state has no value blocked",
		`flex_dispatcher_runs_total{verdict!~"Done|Failed"}`:                                     "the label verdict has no value Failed",
		`vector(1)`: "vector is no series of the code",
		`time()`:    "no series of the code",
	} {
		if got := strings.Join(known.read(expr, values).faults, "; "); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}
