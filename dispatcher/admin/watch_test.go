package admin_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/series"
)

func TestAWatchingAuditShowsWhatItHasFoundLast(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		ctx, stop := context.WithCancel(l.t.Context())
		gauges, registry, ended := &series.Audit{}, metrics.NewKubeRegistry(), make(chan struct{})
		registry.CustomMustRegister(gauges)
		l.ends(0, contract.EncodeListEnd(2), volumeLine("u", "v1", clusterID)+volumeLine("w", "v2", clusterID))
		go func() {
			l.Watch(ctx, admin.Storages{All: true}, time.Minute, gauges)
			close(ended)
		}()
		time.Sleep(150 * time.Second)
		if n, size := gauge(l, registry, "findings"), gauge(l, registry, "bytes"); n != 2 || size != 2 {
			l.t.Errorf("%v findings of %v bytes", n, size)
		}
		success := gauge(l, registry, "last_success_timestamp_seconds")
		l.ends(77, "refused", "")
		time.Sleep(2 * time.Minute)
		if got := gauge(l, registry, "last_success_timestamp_seconds"); got != success {
			l.t.Errorf("a storage that could not be listed counts as seen: %v after %v", got, success)
		}
		l.ends(0, contract.EncodeListEnd(0), "")
		time.Sleep(2 * time.Minute)
		if n := gauge(l, registry, "findings"); n != 0 {
			l.t.Errorf("%v findings are left", n)
		}
		if got := gauge(l, registry, "last_success_timestamp_seconds"); got <= success {
			l.t.Errorf("the last success is %v after %v", got, success)
		}
		stop()
		<-ended
	})
}

// gauge returns the value of one of the audit's series, zero if it has none.
func gauge(l *lab, registry metrics.KubeRegistry, name string) float64 {
	l.t.Helper()
	families, err := registry.Gather()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "flex_dispatcher_audit_"+name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return 0
}
