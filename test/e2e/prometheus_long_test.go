//go:build e2e && long

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// prometheus is a real one, of Debian's package, that scrapes the dispatchers of the Deployment.
type prometheus struct {
	w   *world
	url string
	// audits is the file with the addresses of audits.
	audits string
}

// How long the rules wait in this test: a minute is a second, and an hour 20 of them. Everything else
// is as shipped.
const (
	shortMinute = "1"
	shortHour   = "20"
)

var (
	minutes        = regexp.MustCompile(`(\[|for: )(\d+)m\b`)
	hours          = regexp.MustCompile(`(\[|for: )(\d+)h\b`)
	days           = regexp.MustCompile(`\[1d\]`)
	ofMinutes      = regexp.MustCompile(`(\d+) \* 60\b`)
	ofHours        = regexp.MustCompile(`(\d+) \* 3600\b`)
	unshortened    = regexp.MustCompile(`(?:\[|for: )\d+[mhd]|\* (?:60|3600)\b`)
	scrapeOfPage   = regexp.MustCompile("(?s)```yaml\n(scrape_configs:.*?)```")
	discovery      = regexp.MustCompile(`(?s)kubernetes_sd_configs:\n.*?\n    relabel_configs:`)
	rateOfGrafana  = "$__rate_interval"
	classOfGrafana = "$class"
)

// shortened returns the shipped rules with shorter times.
func shortened(t *testing.T) string {
	t.Helper()
	rules := repositoryFile(t, "deploy/monitoring/rules.yaml")
	if found := len(unshortened.FindAllString(rules, -1)); found < 12 {
		t.Fatalf("the rules have only %d times: has their form changed?", found)
	}
	hour, err := strconv.Atoi(shortHour)
	if err != nil {
		t.Fatal(err)
	}
	inSeconds := func(m []string) string {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s%ds", m[1], n*hour)
	}
	rules = minutes.ReplaceAllString(rules, "${1}${2}s")
	rules = hours.ReplaceAllStringFunc(rules, func(s string) string { return inSeconds(hours.FindStringSubmatch(s)) })
	rules = days.ReplaceAllString(rules, fmt.Sprintf("[%ds]", 24*hour))
	rules = ofMinutes.ReplaceAllString(rules, "$1 * "+shortMinute)
	rules = ofHours.ReplaceAllString(rules, "$1 * "+shortHour)
	if left := unshortened.FindAllString(rules, -1); len(left) > 0 {
		t.Fatalf("these times are not shortened: %q", left)
	}
	return rules
}

func repositoryFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// prometheus starts one with the scrape configuration of docs/monitor.md, and audits. Debian's has no
// discovery of Kubernetes, so the test does that: what is kept of the pods, the page says.
func (w *world) prometheus() *prometheus {
	w.t.Helper()
	dir, address := w.t.TempDir(), w.freeAddress()
	p := &prometheus{w: w, url: "http://" + address, audits: filepath.Join(dir, "audits.json")}
	page := scrapeOfPage.FindStringSubmatch(repositoryFile(w.t, "docs/monitor.md"))
	if page == nil || !discovery.MatchString(page[1]) {
		w.t.Fatal("docs/monitor.md has no scrape configuration that discovers pods")
	}
	scrape := discovery.ReplaceAllString(page[1], "file_sd_configs: [{files: [pods.json]}]\n    relabel_configs:")
	p.write(filepath.Join(dir, "rules.yaml"), shortened(w.t))
	p.write(filepath.Join(dir, "prometheus.yaml"), "global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}\nrule_files: [rules.yaml]\n"+scrape+
		"  - job_name: audit\n    file_sd_configs: [{files: [audits.json]}]\n")
	discovering, stop := context.WithCancel(w.ctx())
	discovered := make(chan struct{})
	go func() {
		defer close(discovered)
		p.discover(discovering, filepath.Join(dir, "pods.json"))
	}()
	p.audit()
	log := &safeBuffer{}
	cmd := exec.CommandContext(w.ctx(), "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = log, log
	w.must(cmd.Start(), "start prometheus")
	w.t.Cleanup(func() { // before the directory is deleted
		stop()
		<-discovered
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // its error names the signal
		if w.t.Failed() {
			w.t.Logf("---- prometheus\n%s", log)
		}
	})
	w.eventually(toBind, "prometheus to scrape both dispatchers", func(ctx context.Context) error {
		found, err := p.ask(ctx, `up{job="flex-dispatcher"} == 1`)
		if err == nil && len(found) != dispatcherNumber {
			err = fmt.Errorf("it scrapes %d", len(found))
		}
		return err
	})
	return p
}

func (p *prometheus) write(file, text string) {
	p.w.t.Helper()
	p.w.must(os.WriteFile(file, []byte(text), 0o600), "write "+file)
}

// targets are some of what it scrapes, with the labels that relabelling sees.
type targets struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels,omitempty"`
}

// scrapes replaces what a file lists, which Prometheus may read at any moment.
func scrapes(file string, all []targets) error {
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// audit lets it scrape these audits, and no others.
func (p *prometheus) audit(addresses ...string) {
	p.w.t.Helper()
	p.w.must(scrapes(p.audits, []targets{{Targets: append([]string{}, addresses...)}}), "name the audits")
}

// discover lists the ports of the pods of the dispatcher's namespace, as the discovery of Kubernetes
// does, until the context ends.
func (p *prometheus) discover(ctx context.Context, file string) {
	for ; ctx.Err() == nil; time.Sleep(time.Second) {
		pods, err := kube.CoreV1().Pods(systemNamespace).List(ctx, all)
		if err != nil {
			continue // the next list follows
		}
		found := []targets{}
		for _, pod := range pods.Items {
			found = append(found, scrapedPorts(pod)...)
		}
		if err := scrapes(file, found); err != nil {
			p.w.t.Errorf("name the pods: %v", err)
			return
		}
	}
}

var notInLabels = regexp.MustCompile(`[^a-zA-Z0-9_]`)

func scrapedPorts(pod corev1.Pod) []targets {
	if pod.Status.PodIP == "" {
		return nil
	}
	var found []targets
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			labels := map[string]string{
				"__meta_kubernetes_namespace": pod.Namespace, "__meta_kubernetes_pod_name": pod.Name, "__meta_kubernetes_pod_container_port_name": port.Name,
			}
			for name, value := range pod.Labels {
				labels["__meta_kubernetes_pod_label_"+notInLabels.ReplaceAllString(name, "_")] = value
			}
			found = append(found, targets{[]string{net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port.ContainerPort)))}, labels})
		}
	}
	return found
}

// get decodes what its API answers.
func (p *prometheus) get(ctx context.Context, path string, data any) error {
	said, err := page(ctx, p.url+path)
	if err != nil {
		return err
	}
	answer := struct {
		Data any `json:"data"`
	}{data}
	return json.Unmarshal([]byte(said), &answer)
}

// sample is one element of what a query returns.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  []any             `json:"value"` // a time, and a number as text
}

// ask sends a query.
func (p *prometheus) ask(ctx context.Context, query string) ([]sample, error) {
	var data struct {
		Result []sample `json:"result"`
	}
	err := p.get(ctx, "/api/v1/query?query="+url.QueryEscape(query), &data)
	return data.Result, err
}

// alert is one that is pending or fires.
type alert struct {
	State       string            `json:"state"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func (a alert) is(name, class string) bool {
	return a.Labels["alertname"] == name && a.Labels["class"] == class
}

// firing returns the alert of a class, if it fires. FlexNoLeader and FlexAuditStale are of none.
func (p *prometheus) firing(ctx context.Context, name, class string) (*alert, error) {
	var data struct {
		Alerts []alert `json:"alerts"`
	}
	if err := p.get(ctx, "/api/v1/alerts", &data); err != nil {
		return nil, err
	}
	for _, a := range data.Alerts {
		if a.is(name, class) && a.State == "firing" {
			return &a, nil
		}
	}
	return nil, nil
}

// fires waits for an alert, and checks that its texts are whole.
func (p *prometheus) fires(within time.Duration, name, class string) {
	p.w.t.Helper()
	began := time.Now()
	p.w.eventually(within, name+" of "+strconv.Quote(class)+" to fire", func(ctx context.Context) error {
		a, err := p.firing(ctx, name, class)
		if err == nil && a == nil {
			err = fmt.Errorf("it does not: %s", p.state(ctx))
		}
		if err != nil {
			return err
		}
		for what, text := range a.Annotations {
			if strings.Contains(text, "<no value>") || strings.Contains(text, "error expanding") {
				p.w.t.Errorf("%s: %s is %q", name, what, text)
			}
		}
		p.w.t.Logf("%s fires after %.0f s: %s", name, time.Since(began).Seconds(), a.Annotations["summary"])
		return nil
	})
}

// clears waits until an alert no longer fires.
func (p *prometheus) clears(within time.Duration, name, class string) {
	p.w.t.Helper()
	p.w.eventually(within, name+" of "+strconv.Quote(class)+" to clear", func(ctx context.Context) error {
		a, err := p.firing(ctx, name, class)
		if err == nil && a != nil {
			err = fmt.Errorf("it fires: %s", a.Annotations["description"])
		}
		return err
	})
}

// state is what Prometheus has of us, for a failure's message.
func (p *prometheus) state(ctx context.Context) string {
	var lines []string
	for _, query := range []string{"ALERTS", "flex_dispatcher_claims_pending", "flex_dispatcher_jobs", "flex_dispatcher_queue", "flex_dispatcher_runs_total"} {
		found, err := p.ask(ctx, query)
		if err != nil {
			return err.Error()
		}
		for _, s := range found {
			lines = append(lines, fmt.Sprint(s.Metric, s.Value[1]))
		}
	}
	return strings.Join(lines, "\n")
}
