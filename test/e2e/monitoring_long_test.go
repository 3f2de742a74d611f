//go:build e2e && long

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// toFire is how long an alert may take with the short times of this test, and toClear how long the
// longest of its ranges lasts after the remedy.
const (
	toFire  = 2 * time.Minute
	toClear = 2 * time.Minute
)

// fault is a class of its own in which something is wrong.
type fault struct {
	w      *world
	cm     *corev1.ConfigMap
	claims []*corev1.PersistentVolumeClaim
}

// A real Prometheus scrapes the real dispatcher as the page says, and has the shipped rules with
// shorter times. Each fault fires its alert, and each remedy clears it. While all are there, each query
// of the dashboard returns data. FlexPanicked needs a bug: promtool alone tries it. No other test runs,
// since there is no leader at the end.
func TestPrometheusSeesEachFaultAndItsRemedy(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, "monitoring")
	p := w.prometheus()
	p.rulesAreHealthy()
	// Each fault is in a world of its own, whose name is that of its class.
	load, waits, stuck := newFault(t, "load", scripted(deletes+offer, nil)), newFault(t, "waits", nil), newFault(t, "stuck", scripted(deletes+offer, map[string]string{
		"image": "localhost/no-such-image:dev", "image-pull-policy": "Never", "max-parallel": "1",
	}))
	fails := newFault(t, "fails", scripted(deletes+"exit 75\n", nil))
	kept := newFault(t, "kept", scripted("[ $FLEX_VERB != delete ] || exit 75\n"+offer, nil))

	kept.create(2).bound()
	load.create(3).bound().delete().create(3).bound().delete()
	kept.delete()
	fails.create(6)
	stuck.create(2)
	waits.create(1)
	audit := w.findingAudit(dir, load.w.ns)
	p.audit(strings.TrimPrefix(audit.url, "http://"))

	// These two first: the pauses between attempts grow beyond the shortened ranges.
	p.fires(toFire, "FlexRunsFailing", fails.w.ns)
	p.fires(toFire, "FlexDeletesFailing", kept.w.ns)
	p.fires(toFire, "FlexClaimWaits", waits.w.ns)
	p.fires(toFire, "FlexJobsStuck", stuck.w.ns)
	p.fires(toFire, "FlexQueueNotServed", stuck.w.ns)
	p.fires(toFire, "FlexAuditFindings", load.w.ns)
	p.answersTheDashboard(t)

	equal(t, "an audit that is asked to end fails", w.stop(audit, syscall.SIGTERM), nil)
	waits.cm = waits.w.config(ownNamespace, waits.w.ns, scripted(deletes+offer, nil))
	for _, f := range []*fault{stuck, fails, kept} {
		f.w.edit(f.cm, scripted(deletes+offer, nil))
	}
	p.clears(toClear, "FlexAuditFindings", load.w.ns)
	for name, f := range map[string]*fault{
		"FlexClaimWaits": waits, "FlexJobsStuck": stuck, "FlexQueueNotServed": stuck, "FlexRunsFailing": fails, "FlexDeletesFailing": kept,
	} {
		p.clears(toClear, name, f.w.ns)
	}

	p.fires(toFire+toClear, "FlexAuditStale", "")
	p.audit(strings.TrimPrefix(w.findingAudit(dir, load.w.ns).url, "http://"))
	p.clears(toClear, "FlexAuditStale", "")

	p.clears(10*time.Second, "FlexNoLeader", "")
	kept.w.whenDone(w.startDispatchers) // before the claims of any class are deleted
	w.scale(0)
	p.fires(toFire, "FlexNoLeader", "")
	w.startDispatchers()
	p.clears(toClear, "FlexNoLeader", "")
}

// newFault makes a class, and its config unless that is the fault.
func newFault(t *testing.T, name string, data map[string]string) *fault {
	t.Helper()
	f := &fault{w: newWorld(t, name)}
	f.w.class(f.w.ns)
	if data != nil {
		f.cm = f.w.config(ownNamespace, f.w.ns, data)
	}
	return f
}

func (f *fault) create(n int) *fault {
	f.w.t.Helper()
	f.claims = nil
	for range n {
		f.claims = append(f.claims, f.w.claim(f.w.ns, fmt.Sprintf("data-%d", len(f.w.claims))))
	}
	return f
}

func (f *fault) bound() *fault {
	f.w.t.Helper()
	for _, claim := range f.claims {
		f.w.bound(claim)
	}
	return f
}

func (f *fault) delete() *fault {
	f.w.t.Helper()
	for _, claim := range f.claims {
		f.w.deleteClaim(claim)
	}
	return f
}

// findingAudit starts an audit that is given a volume without a claim.
func (w *world) findingAudit(dir, class string) *process {
	w.t.Helper()
	list := filepath.Join(dir, "volumes")
	line, err := json.Marshal(map[string]any{"uid": "00000000-0000-4000-8000-000000000000", "volume": "left-behind", "size": 1 << 30, "storageClass": class})
	w.must(err, "write a list")
	w.must(os.WriteFile(list, append(line, '\n'), 0o600), "write a list")
	return w.begin("audit", "--watch", "--interval=2s", "--volumes="+class+"="+list, "--kubeconfig="+os.Getenv("KUBECONFIG"))
}

// rulesAreHealthy checks that it evaluates every rule.
func (p *prometheus) rulesAreHealthy() {
	p.w.t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string } `json:"rules"`
		} `json:"groups"`
	}
	p.w.eventually(time.Minute, "all rules to be evaluated", func(ctx context.Context) error {
		if err := p.get(ctx, "/api/v1/rules", &data); err != nil {
			return err
		}
		if len(data.Groups) != 1 || len(data.Groups[0].Rules) != 9 {
			return fmt.Errorf("it has %+v", data.Groups)
		}
		var faults []error
		for _, r := range data.Groups[0].Rules {
			if r.Health != "ok" {
				faults = append(faults, fmt.Errorf("%s is %s: %s", r.Name, r.Health, r.LastError))
			}
		}
		return errors.Join(faults...)
	})
}

// withoutData are the series of the dashboard that appear only when what they count has happened.
var withoutData = []string{"flex_dispatcher_spare_volumes_total", "flex_dispatcher_events_dropped_total", "flex_dispatcher_trash_"}

// answersTheDashboard sends every query, with the values that Grafana gives its variables.
func (p *prometheus) answersTheDashboard(t *testing.T) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	p.w.must(json.Unmarshal([]byte(repositoryFile(t, "deploy/monitoring/dashboard.json")), &dashboard), "read the dashboard")
	queries := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries++
			expr := strings.NewReplacer(rateOfGrafana, "5m", classOfGrafana, ".*").Replace(target.Expr)
			found, err := p.ask(t.Context(), expr)
			number := slices.ContainsFunc(found, func(s sample) bool { return s.Value[1] != "NaN" })
			mayLack := slices.ContainsFunc(withoutData, func(name string) bool { return strings.Contains(expr, name) })
			if err != nil || !number && !mayLack {
				t.Errorf("%q: %s returns %v: %v", panel.Title, expr, found, err)
			}
		}
	}
	var classes []string
	p.w.must(p.get(t.Context(), "/api/v1/label/class/values?match[]="+url.QueryEscape(`{__name__=~"flex_dispatcher_.+"}`), &classes), "read the values of $class")
	equal(t, "the class that waits is a value of $class", slices.ContainsFunc(classes, func(c string) bool { return strings.HasPrefix(c, "e2e-waits-") }), true)
	t.Logf("%d queries of the dashboard were answered", queries)
}
