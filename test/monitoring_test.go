package test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// update rewrites the PrometheusRule, the plot of the performance page, and the scripts in the
// files of the recipes: make golden.
var update = flag.Bool("update", false, "rewrite what is made of other files")

// rule is an alert of the rules, as Prometheus reads it.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// rulesOf decodes the alerts of a file of rules, which has nothing else.
func rulesOf(t *testing.T, text string) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) == 0 {
		t.Fatalf("the rules have %d groups, want one with alerts", len(file.Groups))
	}
	return file.Groups[0].Rules
}

// A name that is routed or silenced somewhere may not change, so the page lists them.
func TestEachAlertIsListedAndHasARunbook(t *testing.T) {
	listed := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| \\[`(\\w+)`\\]\\(troubleshoot\\.md#(\\w+)\\) \\| (\\w+) \\|").FindAllStringSubmatch(content(t, "docs/monitor.md"), -1) {
		if listed[m[1]] = m[3]; m[2] != strings.ToLower(m[1]) {
			t.Errorf("docs/monitor.md links %s to #%s", m[1], m[2])
		}
	}
	page := content(t, "docs/troubleshoot.md")
	_, page, _ = strings.Cut(page, "\n## What an alert says\n")
	page, _, _ = strings.Cut(page, "\n## ")
	all := rulesOf(t, read(t, "monitoring", "rules.yaml"))
	for _, r := range all {
		if severity := r.Labels["severity"]; listed[r.Alert] != severity || severity != "critical" && severity != "warning" {
			t.Errorf("%s has the severity %q, and docs/monitor.md lists %q", r.Alert, severity, listed[r.Alert])
		}
		if want := "docs/troubleshoot.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s has the runbook_url %q, want %s", r.Alert, r.Annotations["runbook_url"], want)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s lacks a summary or a description", r.Alert)
		}
		_, section, _ := strings.Cut(page, "\n### "+r.Alert+"\n")
		section, _, _ = strings.Cut(section, "\n### ")
		for _, part := range []string{"**Cause:**", "**Remedy:**", "\nkubectl "} {
			if !strings.Contains(section, part) {
				t.Errorf("docs/troubleshoot.md, ### %s: lacks %q", r.Alert, strings.TrimSpace(part))
			}
		}
	}
	if headings := strings.Count(page, "\n### "); len(listed) != len(all) || headings != len(all) {
		t.Errorf("docs/monitor.md lists %d alerts, docs/troubleshoot.md has %d headings of alerts, and there are %d", len(listed), headings, len(all))
	}
}

// promtool, in make check, runs these tests. One that expects no alert at a later time proves that it
// clears.
func TestEachAlertFiresAndClearsInATest(t *testing.T) {
	var file struct {
		Tests []struct {
			Exprs []struct {
				Expr    string           `json:"expr"`
				Samples []map[string]any `json:"exp_samples"`
			} `json:"promql_expr_test"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "monitoring", "rules_test.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	cleared := map[string]bool{}
	for _, test := range file.Tests {
		fired := map[string]bool{}
		for _, e := range test.Exprs {
			name := regexp.MustCompile(`alertname="(\w+)"`).FindStringSubmatch(e.Expr)[1]
			if len(e.Samples) > 0 {
				fired[name] = true
			}
			cleared[name] = cleared[name] || fired[name] && len(e.Samples) == 0 && !strings.Contains(e.Expr, "alertstate")
		}
	}
	for _, r := range rulesOf(t, read(t, "monitoring", "rules.yaml")) {
		if !cleared[r.Alert] {
			t.Errorf("in no test of rules_test.yaml %s fires, and clears after that", r.Alert)
		}
	}
}

// operatorsRules is the rules as an object of the Prometheus Operator. Kustomize cannot put a file
// into a field, so there are two files.
func operatorsRules(rules string) string {
	_, groups, _ := strings.Cut(rules, "\ngroups:\n")
	return `# Generated from rules.yaml by make golden, for the Prometheus Operator. Change rules.yaml.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: flex-provisioner
  namespace: flex-system
  labels: {app.kubernetes.io/name: flex-dispatcher}
spec:
` + regexp.MustCompile(`(?m)^(.+)$`).ReplaceAllString("groups:\n"+groups, "  $1")
}

func TestTheOperatorGetsTheSameRules(t *testing.T) {
	want := operatorsRules(read(t, "monitoring", "rules.yaml"))
	if *update {
		if err := os.WriteFile(filepath.Join(repository, "deploy/monitoring/prometheusrule.yaml"), []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := read(t, "monitoring", "prometheusrule.yaml")
	if got != want {
		t.Error("deploy/monitoring/prometheusrule.yaml has other rules than rules.yaml: run make golden")
	}
	var object struct {
		Spec any `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(got), &object); err != nil {
		t.Fatal(err)
	}
	spec, err := yaml.Marshal(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := fmt.Sprint(rulesOf(t, string(spec))), fmt.Sprint(rulesOf(t, read(t, "monitoring", "rules.yaml"))); a != b {
		t.Errorf("the object has the rules %s, want %s", a, b)
	}
}

// The Operator and the scrape configuration of the page find the pods of the dispatcher and their
// port.
func TestPrometheusFindsTheDispatcher(t *testing.T) {
	d := documentOf[appsv1.Deployment](t, "Deployment", "base", "dispatcher.yaml")
	port := d.Spec.Template.Spec.Containers[0].Ports[0].Name
	var monitor struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			Selector  metav1.LabelSelector                    `json:"selector"`
			Endpoints []struct{ Port, Path, Interval string } `json:"podMetricsEndpoints"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "monitoring", "podmonitor.yaml")), &monitor); err != nil {
		t.Fatal(err)
	}
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(d.Spec.Template.Labels)) || monitor.Metadata.Namespace != d.Namespace {
		t.Errorf("the PodMonitor does not select the dispatcher's pods: %v", err)
	}
	if e := monitor.Spec.Endpoints; len(e) != 1 || e[0].Port != port {
		t.Errorf("the PodMonitor scrapes %+v, and the port is %s", e, port)
	}
	scrape := scrapeConfig(t)
	kept := regexp.MustCompile(`regex: (\S+)`).FindStringSubmatch(scrape)[1]
	name := d.Spec.Template.Labels["app.kubernetes.io/name"]
	if !regexp.MustCompile("^(?:" + kept + ")$").MatchString(name + ";" + port) {
		t.Errorf("the scrape configuration of docs/monitor.md keeps %s, not %s;%s", kept, name, port)
	}
	if !strings.Contains(scrape, "names: ["+d.Namespace+"]") {
		t.Error("the scrape configuration of docs/monitor.md names another namespace")
	}
}

// scrapeConfig is the block of the page for a Prometheus without the Operator.
func scrapeConfig(t *testing.T) string {
	t.Helper()
	blocks := strings.Split(content(t, "docs/monitor.md"), "```yaml\n")
	i := slices.IndexFunc(blocks, func(b string) bool { return strings.HasPrefix(b, "scrape_configs:") })
	if i < 0 {
		t.Fatal("docs/monitor.md has no scrape configuration")
	}
	block, _, _ := strings.Cut(blocks[i], "```")
	return block
}
