package run_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
)

func TestAWatchingAuditShowsWhatItHasFoundLast(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		ctx, stop := context.WithCancel(l.t.Context())
		gauges, registry, ended := &run.Gauges{}, metrics.NewKubeRegistry(), make(chan struct{})
		registry.CustomMustRegister(gauges)
		l.ends(0, contract.EncodeListEnd(2), volumeLine("u", "v1", clusterID)+volumeLine("w", "v2", clusterID))
		go func() {
			l.Watch(ctx, run.Storages{All: true}, time.Minute, gauges)
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

// A storage may list any number of volumes.
func TestTheFullestVolumesHaveASeries(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		ctx, stop := context.WithCancel(l.t.Context())
		gauges, registry, ended := &run.Gauges{}, metrics.NewKubeRegistry(), make(chan struct{})
		registry.CustomMustRegister(gauges)
		const volumes, most = 1003, 1000
		lines := ""
		for i := range volumes {
			uid := fmt.Sprintf("u-%d", i)
			l.add(&corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + uid, Annotations: map[string]string{contract.AnnClaimUID: uid}},
				Spec: corev1.PersistentVolumeSpec{
					StorageClassName: "gold", Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				},
			})
			lines += strings.Replace(volumeLine(uid, "v"+uid, clusterID), "{", fmt.Sprintf(`{"used":%d,`, i), 1)
		}
		l.ends(0, contract.EncodeListEnd(volumes), lines)
		go func() {
			l.Watch(ctx, run.Storages{All: true}, time.Minute, gauges)
			close(ended)
		}()
		time.Sleep(50 * time.Second)
		families, err := registry.Gather()
		if err != nil {
			l.t.Fatal(err)
		}
		found, least := 0, float64(volumes)
		for _, f := range families {
			if f.GetName() == "flex_volume_used_bytes" {
				for _, m := range f.GetMetric() {
					found, least = found+1, min(least, m.GetGauge().GetValue())
				}
			}
		}
		if found != most || least != volumes-most {
			l.t.Errorf("%d series, the least of %v bytes", found, least)
		}
		stop()
		<-ended
	})
}

// A list names any class for a volume: what a storage says is no label of a series.
func TestAListMakesNoSeries(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		ctx, stop := context.WithCancel(l.t.Context())
		gauges, registry, ended := &run.Gauges{}, metrics.NewKubeRegistry(), make(chan struct{})
		registry.CustomMustRegister(gauges)
		lines := ""
		for _, class := range []string{"shop/data", "b", "c"} {
			lines += strings.Replace(volumeLine(class, "v"+class, clusterID), "{", `{"storageClass":"`+class+`",`, 1)
		}
		l.ends(0, contract.EncodeListEnd(3), lines)
		go func() {
			l.Watch(ctx, run.Storages{All: true}, time.Minute, gauges)
			close(ended)
		}()
		time.Sleep(90 * time.Second)
		if n := gauge(l, registry, "findings"); n != 3 {
			l.t.Errorf("%v findings of the class whose storage has the volumes", n)
		}
		stop()
		<-ended
	})
}

// The container that writes a PV chooses its class.
func TestAPVMakesNoSeries(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		ctx, stop := context.WithCancel(l.t.Context())
		gauges, registry, ended := &run.Gauges{}, metrics.NewKubeRegistry(), make(chan struct{})
		registry.CustomMustRegister(gauges)
		for _, class := range []string{"gold", "shop-data"} {
			l.add(&corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: class, Annotations: map[string]string{contract.AnnClaimUID: class, contract.AnnSecret: "flex-provisioner/none"}},
				Spec:       corev1.PersistentVolumeSpec{StorageClassName: class, ClaimRef: &corev1.ObjectReference{Namespace: "app", Name: "data", UID: claimUID}},
			})
		}
		go func() {
			l.Watch(ctx, run.Storages{}, time.Minute, gauges)
			close(ended)
		}()
		time.Sleep(90 * time.Second)
		families, err := registry.Gather()
		found := fmt.Sprint(families)
		if err != nil || strings.Contains(found, "shop-data") || !strings.Contains(found, "gold") {
			l.t.Errorf("%s, %v", found, err)
		}
		stop()
		<-ended
	})
}

// A storage that cannot be listed for a while hides its findings, which are none the newer for
// that.
func TestAWatchingAuditLogsEachFindingOnce(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		var log strings.Builder
		ctx, stop := context.WithCancel(klog.NewContext(l.t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))))
		ended := make(chan struct{})
		found := contract.EncodeListEnd(1)
		l.ends(0, found, volumeLine("u", "v1", clusterID))
		go func() {
			l.Watch(ctx, run.Storages{All: true}, time.Minute, &run.Gauges{})
			close(ended)
		}()
		time.Sleep(90 * time.Second)
		l.ends(77, "refused", "")
		time.Sleep(2 * time.Minute)
		l.ends(0, found, volumeLine("u", "v1", clusterID))
		time.Sleep(2 * time.Minute)
		l.ends(0, contract.EncodeListEnd(0), "")
		time.Sleep(2 * time.Minute)
		l.ends(0, found, volumeLine("u", "v1", clusterID))
		time.Sleep(2 * time.Minute)
		stop()
		<-ended
		if n := strings.Count(log.String(), `object="volume v1"`); n != 2 || !strings.Contains(log.String(), "refused") {
			l.t.Errorf("logged %d times, want once, and once more after it was gone:\n%s", n, log.String())
		}
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
